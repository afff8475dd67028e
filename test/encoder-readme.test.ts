/** What the README shows is answered right by the default model. */
import { readFileSync } from "node:fs"
import { afterAll, beforeAll, expect, test } from "vitest"
import type { DecisionAnswer } from "../src/contract/decisions.ts"
import { admitAny } from "../src/engine/engine.ts"
import { type EncoderEngine, startEncoderEngine } from "../src/engine/encoder/engine.ts"
import { decisionsAnswer, decodeDecisions } from "../src/gateway/classification/wire.ts"
import { baseDecisionModelFile } from "./models.ts"

const never = new AbortController().signal
let engine: EncoderEngine
beforeAll(async () => {
  engine = await startEncoderEngine({ modelFile: baseDecisionModelFile })
})
afterAll(async () => await engine.close())

/** Yes or no, the option, or the likeliest level. */
async function ask(body: unknown): Promise<Record<string, unknown>> {
  const asked = decodeDecisions(Buffer.from(JSON.stringify(body)))
  const call = { signal: never, admit: admitAny }
  const { margins, inputTokens } = await engine.score({ organizationId: "a", ...asked }, call)
  const { answers } = decisionsAnswer(asked, margins, { inputTokens, cachedInputTokens: 0 })
  return Object.fromEntries(answers.map((one) => [one.name, shortAnswer(one)]))
}

function shortAnswer(one: DecisionAnswer): unknown {
  switch (one.type) {
    case "predicate":
      return one.probability > 0.5 ? "yes" : "no"
    case "choice":
      return one.choice
    case "score":
      return one.probabilities.toSorted((a, b) => b.probability - a.probability)[0]?.label
    case "refusal":
      return null
  }
}

test("the README's request", async () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8")
  const [, body = ""] = /-d '(\{[\s\S]*?\})'\n/.exec(readme) ?? []
  expect(await ask(JSON.parse(body))).toEqual({ refund: "yes", topic: "delivery", anger: "annoyed" })
})
