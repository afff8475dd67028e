/** Work of a generation that leaves everything open. */
import type { GenerateWork } from "../src/engine/engine.ts"
import { openWork } from "../src/gateway/openai/chat-work.ts"

export const plainWork = (changes: Partial<GenerateWork> = {}): GenerateWork => ({
  organizationId: "org_1",
  messages: [{ role: "user", content: "Hi" }],
  tools: [],
  toolChoice: "auto",
  parallelToolCalls: true,
  format: { kind: "text" },
  ...openWork,
  outputTokensMax: 5,
  effort: null,
  ...changes,
})

/** The same again for the same prompt. */
export const greedyWork = (changes: Partial<GenerateWork>): GenerateWork =>
  plainWork({ sampling: { ...openWork.sampling, temperature: 0 }, outputTokensMax: 8, ...changes })
