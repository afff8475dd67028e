/** Content in spans, where the operator wants it. */
import { expect, test } from "vitest"
import { logNoContent } from "../../../test/in-memory-gateway.ts"
import type { Attributes, Span } from "../../base/telemetry.ts"
import type { AskedContent, ContentEnd, ContentStart } from "./content-logger.ts"
import { traceContent } from "./request-content.ts"

/** Answers the attributes of the span of one request. */
async function traced(asked: AskedContent, end: Partial<ContentEnd>): Promise<Attributes> {
  const attributes: Record<string, Attributes[string]> = {}
  const span = { set: (more: Attributes) => void Object.assign(attributes, more) } as unknown as Span
  const pending = traceContent(logNoContent).begin({ span, asked: () => asked } as unknown as ContentStart)
  const answered = { model: "m", questionSet: null, answers: [], review: null, output: null, ...end }
  const finishing = pending.finish(() => answered)
  // The span may end from here on.
  const before = { ...attributes }
  await finishing
  expect(before).toEqual(attributes)
  return attributes
}

test("telemetry.content: a decision's span has its evidence, questions and answers, cut where they are long", async () => {
  const questions = [{ name: "late", type: "predicate", instructions: "Is it late?", options: [] }] as never
  const answers = [{ name: "late", verdict: "yes" }] as never
  const asked = { evidence: "x".repeat(20_000), questions, input: null }
  const attributes = await traced(asked, { answers })
  expect(attributes["umpire.decision.evidence"]).toBe(`${"x".repeat(16_384)}…`)
  expect(attributes["umpire.decision.asked"]).toContain("Is it late?")
  expect(attributes["umpire.decision.answers"]).toBe('[{"name":"late","verdict":"yes"}]')
})

const message = (text: string) => ({ role: "user", text }) as never

test("telemetry.content: a conversation's span has its messages by the names of the GenAI conventions", async () => {
  const input = { messages: [message("Hello.")], texts: [] }
  const attributes = await traced({ evidence: null, questions: [], input }, { output: [message("Hi.")] })
  expect(attributes["gen_ai.input.messages"]).toContain("Hello.")
  expect(attributes["gen_ai.output.messages"]).toContain("Hi.")
  expect(attributes["umpire.decision.answers"]).toBeNull()
})
