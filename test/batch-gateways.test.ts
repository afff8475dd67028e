import { expect, test } from "vitest"
import { openPostgres } from "../src/store/postgres.ts"
import { batchScene, clientOf, createBatch, idsIn, killBothGateways, untilEnded } from "./batch-kill.ts"
import { prepareAccount, readBooks, requestTicks } from "./gateways.ts"

const lines = 400
const patienceMs = 100_000

test("a batch over two gateways that are both killed has a result and one charge for every line", async () => {
  const { hit, again } = await killBothGateways(lines, patienceMs)
  expect(again).toBe(hit)
})

test("a batch that can no longer be paid for stops, and what is done is kept", async () => {
  const scene = await batchScene()
  try {
    const gateway = await scene.start("a")
    const affordable = 100
    await prepareAccount(scene.database.url, BigInt(affordable) * requestTicks + 1n)
    const client = clientOf(gateway)
    const batch = await createBatch(client, lines)
    const done = await untilEnded(client, batch.id, patienceMs)
    expect(done.status).toBe("failed")
    expect(done.errors?.data?.[0]?.code).toBe("insufficient_credits")
    expect(done.request_counts).toEqual({ total: lines, completed: affordable, failed: lines - affordable })
    const output = await idsIn(client, done.output_file_id)
    const errors = await idsIn(client, done.error_file_id)
    expect([output.length, errors.length]).toEqual([affordable, lines - affordable])
    expect(new Set([...output, ...errors]).size).toBe(lines)
    await gateway.end("SIGTERM")
    const { charges, balanceTicks } = await readBooks(scene.database.url)
    expect([charges.size, balanceTicks]).toEqual([affordable, 1n])
  } finally {
    await scene.close()
  }
})

test("the spend cutoff stops a batch too", async () => {
  const scene = await batchScene()
  try {
    const gateway = await scene.start("a")
    await prepareAccount(scene.database.url, 1_000_000_000_000n)
    const database = await openPostgres({ url: scene.database.url, connectionsMax: 1 })
    // One cent is 1e8 ticks: a thousand lines.
    await database.query("UPDATE billing_accounts SET spend_cutoff_cents = 1")
    await database.close()
    const client = clientOf(gateway)
    const done = await untilEnded(client, (await createBatch(client, 1_050)).id, patienceMs)
    expect(done.errors?.data?.[0]?.code).toBe("spend_limit_exceeded")
    expect([done.status, done.request_counts]).toEqual([
      "failed",
      { total: 1_050, completed: 1_000, failed: 50 },
    ])
  } finally {
    await scene.close()
  }
})
