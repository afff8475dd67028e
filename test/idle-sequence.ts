/** A stand-in for a sequence that records and reserves nothing. */
import { systemClock } from "../src/base/clock.ts"
import type { Sequence } from "../src/gateway/meter.ts"
import { RequestTrace } from "../src/gateway/telemetry.ts"

export const idleSequence = (changes: Partial<Sequence> = {}): Sequence => ({
  id: "seq_1",
  trace: new RequestTrace(systemClock),
  describe: () => undefined,
  tag: () => undefined,
  name: () => undefined,
  reserve: async () => undefined,
  placed: () => undefined,
  firstByte: () => undefined,
  finish: async () => undefined,
  beginStage: () => undefined,
  endStage: () => undefined,
  admitStage: async () => undefined,
  stages: [],
  spentTicks: 0n,
  answering: null,
  ...changes,
})
