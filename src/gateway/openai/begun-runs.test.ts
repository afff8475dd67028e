import { expect, test } from "vitest"
import { Fault } from "../../contract/errors.ts"
import type { GenerationEvent } from "../../engine/engine.ts"
import { BegunRuns } from "./begun-runs.ts"

const never = new AbortController().signal

async function* writer(
  texts: readonly string[],
  stopped: string[],
  name: string,
): AsyncGenerator<GenerationEvent> {
  try {
    for (const text of texts) yield { kind: "text", text, logprobs: null }
    yield { kind: "end", reason: "stop" }
  } finally {
    stopped.push(name)
  }
}

// oxlint-disable-next-line require-yield -- it fails before it has written anything
async function* failing(): AsyncGenerator<GenerationEvent> {
  throw new Fault("inference_failed", "Cannot go on")
}

test("answers that were begun come whole, and one that is left stops its model", async () => {
  const stopped: string[] = []
  const begun = await BegunRuns.start(
    () => [writer(["a", "b"], stopped, "read"), writer(["c"], stopped, "left")],
    never,
  )
  expect(stopped).toEqual([])
  const [read, left] = begun.continue(never)
  const kinds: string[] = []
  for await (const event of read ?? []) kinds.push(event.kind)
  expect([kinds, stopped]).toEqual([["text", "text", "end"], ["read"]])
  for await (const _ of left ?? []) break
  expect(stopped).toEqual(["read", "left"])
})

test("when one answer fails before its first event, all are stopped and its failure is thrown", async () => {
  const stopped: string[] = []
  const starting = BegunRuns.start(() => [writer(["a"], stopped, "other"), failing()], never)
  await expect(starting).rejects.toMatchObject({ code: "inference_failed" })
  expect(stopped).toEqual(["other"])
})

test("the caller's signal ends answers that were begun with another one", async () => {
  const seen: AbortSignal[] = []
  const begun = await BegunRuns.start((signal) => {
    seen.push(signal)
    return [writer(["a"], [], "one")]
  }, never)
  const caller = new AbortController()
  begun.continue(caller.signal)
  caller.abort(new Error("left"))
  expect(seen[0]?.aborted).toBe(true)
})
