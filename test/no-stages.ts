/** What a stand-in for a sequence has for virtual models, where none is asked. */
import type { Sequence } from "../src/gateway/meter.ts"

export const noStages: Pick<
  Sequence,
  "beginStage" | "endStage" | "admitStage" | "stages" | "spentTicks" | "answering"
> = {
  beginStage: () => undefined,
  endStage: () => undefined,
  admitStage: async () => undefined,
  stages: [],
  spentTicks: 0n,
  answering: null,
}
