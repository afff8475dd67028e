/** What only PGlite has: one process for each directory, files that outlive a killed process, a thread that can end. */
import { spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { beforeEach, describe, expect, onTestFinished, test } from "vitest"
import { prepareEmptyDirectory } from "../../test/database.ts"
import { DirectoryLocked, lockDirectory } from "./directory-lock.ts"
import { clusterIn, connectPglite, openPglite, startPglite } from "./pglite.ts"
import { StoreUnavailable } from "./sql.ts"
import { column, row } from "./rows.ts"

const holder = fileURLToPath(new URL("../../test/programs/hold-database.ts", import.meta.url))

/** Another process with the database open; `next` answers the line that it says next. */
function startHolder(directory: string): { child: ChildProcess; next: () => Promise<string> } {
  const child = spawn(process.execPath, [holder, directory], { stdio: ["pipe", "pipe", "inherit"] })
  onTestFinished(() => void child.kill("SIGKILL"))
  if (child.stdout === null) throw new Error("the child has no output")
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return { child, next: async () => String((await lines.next()).value) }
}

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "umpire-pglite-"))
  await prepareEmptyDirectory(directory)
  const made = directory
  onTestFinished(() => rm(made, { recursive: true, force: true }))
})

describe("PGlite in a directory", () => {
  test("rows are there after a close and another open", async () => {
    const first = await openPglite({ directory })
    await first.script("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
    await first.close()
    const second = await openPglite({ directory })
    expect(await second.query("SELECT n FROM kept")).toEqual([{ n: 7 }])
    await second.close()
  })

  test("a second process is refused while the first has it, with the first's process number", async () => {
    const database = await openPglite({ directory })
    const { next } = startHolder(directory)
    expect(await next()).toMatch(
      new RegExp(`^DirectoryLocked: .*process ${process.pid} uses it; stop that process`),
    )
    expect(await database.query("SELECT 1 AS still")).toEqual([{ still: 1 }])
    await database.close()
  })

  test("a second open in the same process is refused as well", async () => {
    const database = await openPglite({ directory })
    await expect(openPglite({ directory })).rejects.toBeInstanceOf(DirectoryLocked)
    await database.close()
  })

  test("after kill -9 of its owner the directory opens, with every row that was acknowledged", async () => {
    const { child, next } = startHolder(directory)
    expect(await next()).toBe("open")
    for (let n = 1; n <= 20; n++) {
      child.stdin?.write(`${n}\n`)
      expect(await next()).toBe(`wrote ${n}`)
    }
    child.kill("SIGKILL")
    await once(child, "exit")
    const database = await openPglite({ directory })
    const rows = await row({ n: column.integer }).all(database)`SELECT n FROM written ORDER BY n`
    expect(rows.map(({ n }) => n)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
    await database.close()
  })

  test("files that are not a database are refused with a sentence, and the lock is given back", async () => {
    await rm(join(directory, "postgres", "global"), { recursive: true })
    await expect(openPglite({ directory })).rejects.toBeInstanceOf(StoreUnavailable)
    await (await lockDirectory(directory)).release()
  })
})

describe.runIf(process.platform === "linux")("the memory of PGlite", () => {
  test("creating a cluster takes less than 900 MB", async () => {
    const { child, next } = startHolder(join(directory, "another"))
    expect(await next()).toBe("open")
    const [, peakKb] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8")) ?? []
    expect(Number(peakKb)).toBeGreaterThan(100_000)
    expect(Number(peakKb)).toBeLessThan(900_000)
  })
})

describe("the thread of PGlite", () => {
  test("when it ends, calls in flight and later ones fail as an outage instead of waiting", async () => {
    const thread = startPglite()
    const database = await connectPglite(thread, clusterIn(directory), { transactionMaxMs: 60_000 })
    const inFlight = database.query("SELECT pg_sleep(600)")
    const inTransaction = database.transaction((sql) => sql.query("SELECT 1"))
    await thread.close()
    await expect(inFlight).rejects.toBeInstanceOf(StoreUnavailable)
    await expect(inTransaction).rejects.toBeInstanceOf(StoreUnavailable)
    await expect(database.query("SELECT 1")).rejects.toBeInstanceOf(StoreUnavailable)
    await database.close()
  })

  test("a long statement does not keep this thread from its work", async () => {
    const thread = startPglite()
    const database = await connectPglite(thread, clusterIn(directory), { transactionMaxMs: 60_000 })
    let done = false
    const long = database.query("SELECT pg_sleep(600)").finally(() => (done = true))
    await new Promise((resolve) => setImmediate(resolve))
    expect(done).toBe(false)
    await thread.close()
    await expect(long).rejects.toBeInstanceOf(StoreUnavailable)
    await database.close()
  })

  test("a transaction whose work never ends is rolled back, and the next caller gets its turn", async () => {
    const database = await openPglite({ directory, transactionMaxMs: 50 })
    await database.script("CREATE TABLE stuck (n int)")
    const stuck = database.transaction(async (sql) => {
      await sql.query("INSERT INTO stuck VALUES (1)")
      await new Promise(() => undefined)
    })
    const next = database.query("SELECT n FROM stuck")
    await expect(stuck).rejects.toBeInstanceOf(StoreUnavailable)
    expect(await next).toEqual([])
    await database.close()
  })

  test("a closed database says that it is closed", async () => {
    const database = await openPglite({ directory })
    await database.close()
    await expect(database.query("SELECT 1")).rejects.toThrow("it is closed")
  })
})
