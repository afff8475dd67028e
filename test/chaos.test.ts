/** The short form of `npm run chaos`: real processes are broken under load, and nothing is lost, wrong or left hanging. */
import { expect, test } from "vitest"
import { type PhaseResult, runChaos } from "./chaos/chaos.ts"

const timeoutMs = 600_000

test(
  "no request hangs or is answered wrongly, and no charge is lost or made twice, whatever breaks",
  async () => {
    const { phases, money } = await runChaos({
      faultMs: 1_500,
      calmMs: 500,
      decisions: 3,
      streams: 1,
      // Requests come throughout each fault, and leave the processors to other tests in between.
      thinkMs: 50,
      // Many of this load balancer's intervals, also on a machine that stops for seconds; `npm run chaos` rolls with what any gateway does.
      drainMs: 30_000,
      faults: ["kill", "freeze", "corrupt", "partition", "database", "stall", "roll"],
    })
    const bad = phases.filter(({ hangs, wrong }) => hangs > 0 || wrong > 0)
    expect(bad).toEqual([])
    expect(answered(phases)).toBeGreaterThan(0)
    expect({ lost: money.lostTicks, doubled: money.doubledTicks, isBalanced: money.isBalanced }).toEqual({
      lost: 0n,
      doubled: 0n,
      isBalanced: true,
    })
    // A restart that is announced breaks nothing at all.
    expect(phases.find(({ name }) => name === "roll")).toMatchObject({ cleanErrors: 0 })
  },
  timeoutMs,
)

const answered = (phases: readonly PhaseResult[]): number =>
  phases.reduce((sum, { successes }) => sum + successes, 0)
