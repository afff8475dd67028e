import { expect, test } from "vitest"
import { idleSequence } from "../../test/idle-sequence.ts"
import {
  catalogOf,
  catalogResolver,
  inferenceCall,
  logNoContent,
  routerTo,
} from "../../test/in-memory-gateway.ts"
import { systemClock } from "../base/clock.ts"
import { threadBytesMin } from "../base/peer/threads.ts"
import { classificationHandlers } from "./classify.ts"
import { createSetPolicies } from "./question-sets/policy.ts"
import type { Sets } from "./question-sets/sets.ts"
import { compileVersion } from "./question-sets/version.ts"
import type { Routed } from "./routing/router.ts"

const settings = { threshold: null, below: "abstain", target_accuracy: null, calibration: null } as const
const version = compileVersion(
  { setId: "qs_1", setName: "mail", number: 1, hash: "" },
  {
    model: "m",
    questions: [{ type: "predicate", name: "rude", instructions: "Is it rude?", ...settings }],
    calibration: null,
  },
  new Map(),
)

const score: Routed["score"] = async (_, { admit }) => {
  await admit(1)
  return { margins: Float64Array.of(2), inputTokens: 1 }
}

test("a shadow is told of a request only after the request is recorded", async () => {
  const seen: string[] = []
  const sets: Pick<Sets, "find"> = {
    find: async () => ({
      version,
      shadow: { version: 1, model: null, share: 1, costMaxDay: 0n },
      reviewSampleRate: 0,
    }),
  }
  const handlers = classificationHandlers({
    models: catalogResolver(catalogOf()),
    router: routerTo({ score }),
    meter: {
      begin: () =>
        idleSequence({
          finish: async () => {
            await Promise.resolve()
            seen.push("recorded")
          },
        }),
    },
    sets: createSetPolicies({
      sets,
      shadows: { observe: ({ sequenceId }) => seen.push(`shadow of ${sequenceId}`) },
      answerCounter: { count: ({ verdicts }) => seen.push(`${verdicts.length} counted`) },
    }),
    content: logNoContent,
    clock: systemClock,
    timeoutMs: 60_000,
    compatibility: { nullDescriptions: false, decisionsGa: false },
  })
  const body = Buffer.from(JSON.stringify({ model: "set:mail", input: "Go away", questions: [] }))
  await handlers.createDecision(inferenceCall(body))
  expect(seen).toEqual(["recorded", "1 counted", "shadow of seq_1"])
})

const unexpected = (): never => {
  throw new Error("The test expects no such work")
}

test.each([-1, 0, 1])(
  "a body of the size for a thread %i is refused in its own words, and its model is recorded",
  async (more) => {
    const named: string[] = []
    const handlers = classificationHandlers({
      models: catalogResolver(catalogOf()),
      router: routerTo({}),
      meter: { begin: () => idleSequence({ name: (model) => void named.push(model) }) },
      sets: { policyFor: unexpected },
      content: logNoContent,
      clock: systemClock,
      timeoutMs: 60_000,
      compatibility: { nullDescriptions: false, decisionsGa: false },
    })
    const [head, tail] = ['{"model":"m","input":"', '","questions":[],"more":1}']
    const filler = "x".repeat(threadBytesMin + more - head.length - tail.length)
    // With a buffer of its own, as a body comes.
    const body = Buffer.allocUnsafeSlow(threadBytesMin + more)
    body.write(head + filler + tail)
    await expect(handlers.createDecision(inferenceCall(body))).rejects.toMatchObject({
      code: "unknown_field",
    })
    expect(named).toContain("m")
  },
)
