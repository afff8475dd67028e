/** What only a PostgreSQL server has: connections that break, transactions that collide, an answer that never comes. */
import { createServer, connect, type AddressInfo, type Socket } from "node:net"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { emptyDatabase, startPostgres, stopPostgres, type FreshDatabase } from "../../test/postgres.ts"
import { insertBillingAccount, lockBillingAccount } from "./billing-accounts.ts"
import { migrate } from "./migrate.ts"
import { insertOrganization, lockOrganization } from "./organizations.ts"
import { openPostgres } from "./postgres.ts"
import { putRoutingPolicy } from "./organization-snapshot.ts"
import { SqlError, StoreUnavailable, type Database } from "./sql.ts"

let fresh: FreshDatabase
let database: Database
beforeAll(async () => {
  fresh = await emptyDatabase()
  database = await openPostgres({ url: fresh.url })
})
afterAll(async () => {
  await database.close()
  await fresh.drop()
})

/** Ends every connection of this test's database but the one that asks, as a failover would. */
async function breakConnections(on: Database): Promise<void> {
  await on.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  )
}

describe("collisions", () => {
  test("a deadlock is resolved by doing one of the two again", async () => {
    await database.script(
      "CREATE TABLE rows (id int PRIMARY KEY, n int); INSERT INTO rows VALUES (1, 0), (2, 0)",
    )
    const bothHoldOne = Promise.withResolvers<void>()
    let holding = 0
    let attempts = 0
    const updateBoth = (first: number, second: number): Promise<void> =>
      database.transaction(async (sql) => {
        attempts++
        await sql.query("UPDATE rows SET n = n + 1 WHERE id = $1", [first])
        if (++holding === 2) bothHoldOne.resolve()
        await bothHoldOne.promise
        await sql.query("UPDATE rows SET n = n + 1 WHERE id = $1", [second])
      })
    await Promise.all([updateBoth(1, 2), updateBoth(2, 1)])
    expect(attempts).toBe(3)
    expect(await database.query("SELECT n FROM rows ORDER BY id")).toEqual([{ n: 2 }, { n: 2 }])
  })

  test("serializable transactions that would break a rule together are done one after the other", async () => {
    await database.script(
      "CREATE TABLE on_call (name text, yes boolean); INSERT INTO on_call VALUES ('a', true), ('b', true)",
    )
    const bothLooked = Promise.withResolvers<void>()
    let looking = 0
    const leave = (name: string): Promise<boolean> =>
      database.transaction(
        async (sql) => {
          const others = await sql.query("SELECT name FROM on_call WHERE yes AND name <> $1", [name])
          if (++looking === 2) bothLooked.resolve()
          await bothLooked.promise
          if (others.length === 0) return false
          await sql.query("UPDATE on_call SET yes = false WHERE name = $1", [name])
          return true
        },
        { isolation: "serializable" },
      )
    const left = await Promise.all([leave("a"), leave("b")])
    expect(left.filter(Boolean)).toHaveLength(1)
    expect(await database.query("SELECT name FROM on_call WHERE yes")).toHaveLength(1)
  })
})

describe("locks", () => {
  test.for([
    ["an organization", lockOrganization, "org_locked"],
    ["a billing account", lockBillingAccount, "ba_locked"],
  ] as const)(
    "%s that one transaction has locked another cannot lock, but can refer to",
    async ([, lock, id]) => {
      await migrate(database)
      const times = { createdAt: new Date(0), updatedAt: new Date(0) }
      const account = {
        id: `ba_${id}`,
        email: "a@example.com",
        mode: "prepaid" as const,
        provider: "local",
        ...times,
      }
      const billingAccountId = id.startsWith("ba") ? id : account.id
      await insertBillingAccount(database, { ...account, id: billingAccountId })
      const organization = { name: "Acme", billingAccountId, isPersonal: false, ...times }
      const organizationId = id.startsWith("org") ? id : `org_${id}`
      await insertOrganization(database, { ...organization, id: organizationId })
      const peer = await openPostgres({ url: fresh.url })
      onTestFinished(() => peer.close())
      await database.transaction(async (sql) => {
        expect(await lock(sql, id)).toMatchObject({ id })
        const other = peer.transaction(async (others) => {
          await others.query("SET LOCAL lock_timeout = 20")
          await insertOrganization(others, { ...organization, id: `${organizationId}_more` })
          await putRoutingPolicy(others, {
            organizationId,
            mode: "nearest",
            fallback: "disabled",
            regions: [],
            updatedAt: new Date(0),
          })
          await lock(others, id)
        })
        // 55P03: the lock was not to be had; the inserts before it did not have to wait.
        await expect(other).rejects.toMatchObject({
          state: "55P03",
          message: expect.stringContaining("lock timeout"),
        })
      })
    },
  )
})

/** As PostgreSQL frames what it says. */
function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.write(type, "latin1")
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

describe("outages", () => {
  test("a server that is not there is an outage, said without the URL", async () => {
    const url = new URL(fresh.url)
    url.port = String(await closedPort())
    url.password = "secret-word"
    const error: unknown = await openPostgres({ url: url.href }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(StoreUnavailable)
    expect(String(error)).not.toMatch(/secret-word|127\.0\.0\.1/)
  })

  test("a server that shuts down in the same packet in which it says that it is ready is an outage", async () => {
    const shutdown = ["SFATAL", "C57P01", "Mterminating connection due to administrator command", "", ""]
    const server = createServer((socket) =>
      socket.once("data", () =>
        socket.end(
          Buffer.concat([
            message("R", Buffer.alloc(4)),
            message("Z", Buffer.from("I")),
            message("E", Buffer.from(shutdown.join("\0"), "latin1")),
          ]),
        ),
      ),
    )
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    onTestFinished(() => void server.close())
    // True for a TCP server that listens.
    const { port } = server.address() as AddressInfo
    await expect(openPostgres({ url: `postgres://umpire@127.0.0.1:${port}/umpire` })).rejects.toThrow(
      StoreUnavailable,
    )
  })

  test("a database that does not exist is refused as a mistake, not as an outage", async () => {
    const url = new URL(fresh.url)
    url.pathname = "/no_such_database"
    await expect(openPostgres({ url: url.href })).rejects.toMatchObject({ name: "SqlError", state: "3D000" })
  })

  test("a connection that breaks in a transaction is an outage, and the next call gets a new one", async () => {
    const victim = await openPostgres({ url: fresh.url })
    onTestFinished(() => victim.close())
    await database.script("CREATE TABLE broken (n int)")
    const cut = victim.transaction(async (sql) => {
      await sql.query("INSERT INTO broken VALUES (1)")
      await breakConnections(database)
      await sql.query("INSERT INTO broken VALUES (2)")
    })
    await expect(cut).rejects.toBeInstanceOf(StoreUnavailable)
    expect(await victim.query("SELECT n FROM broken")).toEqual([])
  })

  test("a statement that takes too long is an outage of the store, not a mistake of the caller", async () => {
    const slow = database.transaction(async (sql) => {
      await sql.query("SET LOCAL statement_timeout = 20")
      await sql.query("SELECT pg_sleep(600)")
    })
    await expect(slow).rejects.toBeInstanceOf(StoreUnavailable)
    expect(await database.query("SELECT 1 AS well")).toEqual([{ well: 1 }])
  })

  test("a mistake in a statement is not an outage", async () => {
    await expect(database.query("SELEKT 1")).rejects.toBeInstanceOf(SqlError)
  })

  test("after a server that went without warning has come back, calls work again and committed rows are there", async () => {
    const folder = await mkdtemp(join(tmpdir(), "umpire-postgres-"))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    // With fsync, because this test claims durability.
    const first = await startPostgres(folder, { fsync: true })
    const survivor = await openPostgres({ url: first.url })
    onTestFinished(() => survivor.close())
    await survivor.script("CREATE TABLE kept (n int)")
    await survivor.query("INSERT INTO kept VALUES (1)")
    await stopPostgres(first, "SIGQUIT")
    await expect(survivor.query("SELECT 1")).rejects.toBeInstanceOf(StoreUnavailable)
    await expect(survivor.transaction((sql) => sql.query("SELECT 1"))).rejects.toBeInstanceOf(
      StoreUnavailable,
    )
    const second = await startPostgres(folder, { fsync: true, port: first.port })
    onTestFinished(() => stopPostgres(second))
    expect(await survivor.query("SELECT n FROM kept")).toEqual([{ n: 1 }])
  })
})

describe("LISTEN", () => {
  test("a listener whose connection breaks hears again through a new one", async () => {
    const through = await startRelay(fresh.url)
    const listening = await openPostgres({ url: through.url })
    onTestFinished(() => listening.close())
    const heard: string[] = []
    await listening.listen("again", (payload) => heard.push(payload))
    while (heard.length === 0) await database.query("SELECT pg_notify('again', 'before')")
    through.cut()
    // What is sent before the new connection listens is lost, as the port says: so it is sent until it is heard.
    while (!heard.includes("after")) await database.query("SELECT pg_notify('again', 'after')")
    expect(heard[0]).toBe("before")
    // One of the pool, one that listened, and the one that replaced it.
    expect(through.connections()).toBe(3)
  })
})

interface Relay {
  readonly url: string
  cut(): void
  /** How many were made, ever. */
  connections(): number
}

/** Passes bytes between a client and the server until it is told to cut every connection. */
async function startRelay(url: string): Promise<Relay> {
  const target = new URL(url)
  const serverPort = Number(target.port)
  const sockets = new Set<Socket>()
  let connections = 0
  const relay = createServer((client) => {
    connections++
    const server = connect(serverPort, target.hostname)
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from)
      from.pipe(to)
      from.on("error", () => to.destroy())
      from.on("close", () => to.destroy())
    }
  })
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void relay.close())
  target.port = String(portOf(relay.address()))
  return {
    url: target.href,
    cut: () => {
      for (const socket of sockets) socket.destroy()
      sockets.clear()
    },
    connections: () => connections,
  }
}

async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const port = portOf(server.address())
  await new Promise((resolve) => server.close(resolve))
  return port
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string") throw new Error("the server does not listen on a port")
  return address.port
}
