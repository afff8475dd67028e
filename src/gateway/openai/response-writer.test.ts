import { expect, test } from "vitest"
import type { ResponseRequest } from "../../contract/openai/responses.ts"
import { ManualClock } from "../../../test/manual-clock.ts"
import { createIds } from "../../base/ids.ts"
import { ResponseWriter } from "./response-writer.ts"

const parts = { ids: createIds(), clock: new ManualClock(0) }

const logprob = (token: string) => ({ token, logprob: -1, top: [] })

test("log-probabilities of all deltas are in the answer, and those of a delta in its event alone", () => {
  // Of a request, only what is set is looked at.
  const request = { model: "m", input: "x" } as unknown as ResponseRequest
  const writer = new ResponseWriter(parts, { request, model: "m", store: false })
  const first = writer.add({ kind: "text", text: "a", logprobs: [logprob("a")] })
  const second = writer.add({ kind: "text", text: "b", logprobs: [logprob("b")] })
  const added = first.find(({ type }) => type === "response.content_part.added")
  expect(added).toMatchObject({ part: { logprobs: [] } })
  expect(second.at(-1)).toMatchObject({ delta: "b", logprobs: [{ token: "b" }] })
  expect(writer.response.output[0]).toMatchObject({
    content: [{ text: "ab", logprobs: [{ token: "a" }, { token: "b" }] }],
  })
})
