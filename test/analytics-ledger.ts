/** Kills a serving gateway with its analytics in the middle of requests, and holds the events against the ledger. */
import { once } from "node:events"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"
import { Chance } from "./analytics-samples.ts"
import { prepareDirectory } from "./database.ts"
import { operatorOf } from "./operator.ts"
import { type TestServer, startServer } from "./server.ts"

const clients = 3
const acknowledgedMax = 8
const perKillMaxMs = 120_000

export function ledgerSuite(kills: number): void {
  test(
    `the events agree with the ledger after ${kills} kills of a serving gateway`,
    async () => {
      const dataDirectory = await mkdtemp(join(tmpdir(), "umpire-ledger-"))
      await prepareDirectory(join(dataDirectory, "database"))
      const from = new Date().toISOString()
      const chance = new Chance(11)
      let acknowledged = 0
      for (let life = 0; life < kills; life++) {
        const server = await startServer({ dataDirectory })
        acknowledged += await askAndKill(server, 1 + chance.below(acknowledgedMax))
      }
      const server = await startServer({ dataDirectory })
      const verdict = await (await operatorOf({ dataDirectory })).verifyEvents({ query: { from } })
      console.log(
        `${kills} kills: ${acknowledged} acknowledged, ${verdict.ledger} in the ledger, ${verdict.events} events`,
      )
      expect(verdict).toMatchObject({ ok: true, differences_count: 0, events: verdict.ledger })
      expect(verdict.events).toBeGreaterThanOrEqual(acknowledged)
      await server.stop()
      await rm(dataDirectory, { recursive: true, force: true })
    },
    (kills + 1) * perKillMaxMs,
  )
}

/** Several ask at once, so that the kill falls between others' records, exports and replies. */
async function askAndKill(server: TestServer, count: number): Promise<number> {
  const ended = once(server.process, "exit")
  let acknowledged = 0
  const ask = async (): Promise<void> => {
    while (server.process.signalCode === null) {
      try {
        const response = await server.post("/v1/decisions", decision)
        await response.text()
        expect(response.status).toBe(200)
      } catch (error) {
        // A connection breaks when the server is killed, and only then.
        if (server.process.killed) return
        throw error
      }
      if (++acknowledged >= count) server.process.kill("SIGKILL")
    }
  }
  await Promise.all(Array.from({ length: clients }, ask))
  await ended
  return acknowledged
}

const question = { type: "predicate", name: "late", instructions: "Is the parcel late?" }
const decision = { model: "umpire-decide", input: "The parcel came two weeks late.", questions: [question] }
