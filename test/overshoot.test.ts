/** Nothing is overspent: two gateways, one account, far more requests than it can pay for. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, test } from "vitest"
import { openPostgres } from "../src/store/postgres.ts"
import {
  TestGateway,
  ask,
  askStream,
  prepareAccount,
  readBooks,
  requestTicks,
  tokenTicks,
} from "./gateways.ts"
import { type FreshDatabase, freshDatabase } from "./postgres.ts"
import { bootstrapKey } from "./server.ts"
import { column, row } from "../src/store/rows.ts"

let database: FreshDatabase
let directory: string
let gateways: TestGateway[] = []

beforeAll(async () => {
  database = await freshDatabase()
  directory = await mkdtemp(join(tmpdir(), "umpire-overshoot-"))
  for (const name of ["a", "b"])
    gateways.push(
      await TestGateway.start({
        databaseUrl: database.url,
        dataDirectory: join(directory, name),
        // Long enough on a busy machine: the test is about what is affordable, not about how soon.
        env: { UMPIRE_BILLING_RECALL_WAIT_MS: "60000" },
      }),
    )
})
afterAll(async () => {
  for (const gateway of gateways) await gateway.end("SIGTERM")
  await database.drop()
  await rm(directory, { recursive: true })
})

const requests = 500
const affordable = 100

async function burst(name: string, send: typeof ask = ask): Promise<Map<string, number>> {
  const replies = await Promise.all(
    Array.from({ length: requests }, (_, index) =>
      send(gateways[index % gateways.length]?.url ?? "", `${name}-${index}`),
    ),
  )
  const counts = new Map<string, number>()
  for (const reply of replies) {
    const outcome = reply ? (reply.code ?? String(reply.status)) : "broken"
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
  }
  return counts
}

/** Makes both gateways put what they have into the ledger. */
async function settle(accountId: string): Promise<void> {
  for (const { url } of gateways) {
    const response = await fetch(`${url}/v1/billing_accounts/${accountId}?force_refresh=true`, {
      headers: { authorization: `Bearer ${bootstrapKey}` },
    })
    expect(response.status).toBe(200)
  }
}

test.each([
  ["requests", ask],
  ["streams", askStream],
])(
  "of 500 %s at two gateways exactly the 100 that the credit covers succeed, and it ends at zero",
  async (name, send) => {
    const accountId = await prepareAccount(database.url, BigInt(affordable) * requestTicks)
    const counts = await burst(name, send)
    expect(Object.fromEntries(counts)).toEqual({
      "200": affordable,
      insufficient_credits: requests - affordable,
    })
    await settle(accountId)
    const books = await readBooks(database.url)
    expect([books.balanceTicks, books.ledgerTicks]).toEqual([0n, 0n])
  },
)

test.each([
  ["requests", ask],
  ["streams", askStream],
])(
  "of 500 %s at two gateways exactly those under the spend cutoff succeed, and it flips local_state",
  async (name, send) => {
    const accountId = await prepareAccount(database.url, 1_000_000_000n)
    // One cent is 1000 requests; half a token left over must not matter either.
    const cutoffTicks = 100_000_000n
    const sql = await openPostgres({ url: database.url, connectionsMax: 1 })
    const spent = cutoffTicks - BigInt(affordable) * requestTicks - tokenTicks / 2n
    await sql.query("UPDATE billing_accounts SET spend_cutoff_cents = 1")
    await sql.query("UPDATE month_spend SET spent_ticks = $1, refused = false", [spent])
    await sql.close()
    const state = async () => {
      const path = `${gateways[0]?.url}/v1/billing_accounts/${accountId}/spend_controls`
      const response = await fetch(path, { headers: { authorization: `Bearer ${bootstrapKey}` } })
      const body = (await response.json()) as { data: { usage_spend_cutoff: { local_state: string } } }
      return body.data.usage_spend_cutoff.local_state
    }
    expect(await state()).toBe("ok")
    const counts = await burst(`cutoff-${name}`, send)
    expect(Object.fromEntries(counts)).toEqual({
      "200": affordable,
      spend_limit_exceeded: requests - affordable,
    })
    expect(await state()).toBe("blocked")
    await settle(accountId)
    const months = await openPostgres({ url: database.url, connectionsMax: 1 })
    const [month] = await row({ spent_ticks: column.bigint }).all(months)`SELECT spent_ticks FROM month_spend`
    await months.close()
    expect(month?.spent_ticks).toBe(cutoffTicks - tokenTicks / 2n)
  },
)
