/** Work of a generation that leaves everything open. */
import type { GenerateWork } from "../src/engine/engine.ts"

export const plainWork = (changes: Partial<GenerateWork> = {}): GenerateWork => ({
  organizationId: "org_1",
  messages: [{ role: "user", content: "Hi" }],
  tools: [],
  toolChoice: "auto",
  parallelToolCalls: true,
  format: { kind: "text" },
  sampling: {
    temperature: null,
    topP: null,
    seed: null,
    frequencyPenalty: 0,
    presencePenalty: 0,
    logitBias: {},
  },
  stop: [],
  topLogprobs: null,
  outputTokensMax: 5,
  truncate: false,
  effort: null,
  ...changes,
})
