/** `umpire billing` on the store itself, as without a server. */
import { Writable } from "node:stream"
import { afterAll, beforeAll, expect, test } from "vitest"
import { systemClock } from "../src/base/clock.ts"
import { createIds } from "../src/base/ids.ts"
import { billing as command } from "../src/cli/billing.ts"
import { runCli } from "../src/cli/run.ts"
import { firstStart } from "../src/control/first-start.ts"
import { billingOperatorHandlers } from "../src/control/operator/billing.ts"
import type { Database } from "../src/store/sql.ts"
import { openTestDatabase } from "./database.ts"
import { operatorOn } from "./operator.ts"
import { column, row } from "../src/store/rows.ts"

let database: Database
beforeAll(async () => {
  database = await openTestDatabase()
  await firstStart(database, {}, { clock: systemClock, ids: createIds() })
})
afterAll(async () => await database.close())

/** What the journal is said to hold beyond the ledger. */
let pendingRecords = 0

async function billing(...given: string[]): Promise<{ status: number; stdout: string; stderr: string }> {
  const handlers = billingOperatorHandlers({
    database,
    clock: systemClock,
    ids: createIds(),
    invalidate: () => undefined,
    journalState: async () => ({ gatewayId: "gw_1", pendingRecords, lost: [], unfinished: [] }),
  })
  const [stdout, stderr] = [new Collector(), new Collector()]
  const status = await runCli(
    {
      billing: {
        summary: "",
        load: async () =>
          command(async () => ({ client: operatorOn(database, handlers), close: async () => undefined })),
      },
    },
    "0",
    {
      argv: ["billing", ...given],
      surroundings: { stdout, stderr, stdin: process.stdin, environment: {}, workingDirectory: "" },
    },
  )
  return { status, stdout: stdout.text, stderr: stderr.text }
}

class Collector extends Writable {
  text = ""

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString()
    done()
  }
}

const change = async (statement: string): Promise<void> => void (await database.query(statement))

test("credits and adjusts with a reason, shows the ledger, refuses what is not there, and verifies", async () => {
  expect((await billing("credit", "--cents", "250", "--reason", "goodwill")).stdout).toContain(
    "balance is $102.50.",
  )
  expect(
    (await billing("adjust", "--cents=-50", "--reason", "mistake", "--reference", "r1")).stdout,
  ).toContain("$102.00.")
  const again = await billing("adjust", "--cents=-50", "--reason", "mistake", "--reference", "r1")
  expect([again.status, again.stderr]).toEqual([1, expect.stringContaining("already")])
  expect((await billing("adjust", "--cents=-10201", "--reason", "too much")).status).toBe(1)
  expect((await billing("credit", "--cents", "10")).status).toBe(2)
  const { entries } = JSON.parse((await billing("ledger", "--json")).stdout) as {
    entries: { kind: string; note: string | null }[]
  }
  expect(entries.map(({ kind, note }) => [kind, note])).toEqual([
    ["adjustment", "mistake"],
    ["credit", "goodwill"],
    ["credit", null],
  ])
  const verified = await billing("verify")
  expect([verified.status, verified.stdout]).toEqual([0, expect.stringContaining("Every balance is the sum")])
})

test("verify finds a balance that is not the sum of its ledger, and a lease that nobody renews", async () => {
  await change("UPDATE billing_accounts SET balance_ticks = balance_ticks + 1")
  await change(
    "INSERT INTO leases SELECT 'gw_dead', id, '2026-01-01', 100000000, '2026-01-01' FROM billing_accounts",
  )
  const { status, stdout } = await billing("verify")
  expect(status).toBe(1)
  expect(stdout).toContain("its ledger")
  expect(stdout).toContain("umpire billing release gw_dead")
  await change("UPDATE billing_accounts SET balance_ticks = balance_ticks - 1")
  expect((await billing("release", "gw_dead")).stdout).toContain("$0.01.")
  expect((await billing("verify")).status).toBe(0)
})

test("verify finds usage that is not in the ledger", async () => {
  pendingRecords = 3
  const { status, stdout } = await billing("verify")
  pendingRecords = 0
  expect([status, stdout]).toEqual([1, expect.stringContaining("3 records of the journal")])
})

test("an account is made postpaid, which ends its refills", async () => {
  expect((await billing("set", "--mode", "postpaid")).stdout).toContain("is postpaid, paid through local")
  const [account] = await row({ auto_refill_enabled: column.boolean }).all(
    database,
  )`SELECT * FROM billing_accounts`
  expect(account?.auto_refill_enabled).toBe(false)
  expect((await billing("set")).status).toBe(2)
  expect((await billing("set", "--mode", "free")).status).toBe(2)
})
