import { expect, test } from "vitest"
import { idleSequence } from "../../test/idle-sequence.ts"
import type { Catalog } from "../base/catalog.ts"
import { systemClock } from "../base/clock.ts"
import type { CallOf } from "../contract/endpoint.ts"
import type { Table } from "../contract/table.ts"
import { classificationHandlers } from "./classify.ts"
import { logNoContent } from "./content/content-logger.ts"
import { createSetPolicies } from "./question-sets/policy.ts"
import type { Sets } from "./question-sets/sets.ts"
import { compileVersion } from "./question-sets/version.ts"
import { catalogResolver } from "./organization-access.ts"
import type { Routed } from "./routing/router.ts"

const noPrices = {
  inputTokenTicks: 0n,
  cachedInputTokenTicks: 0n,
  outputTokenTicks: 0n,
  millisecondTicks: 0n,
}
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
    find: async () => ({ version, shadow: { version: 1, model: null, share: 1 }, reviewSampleRate: 0 }),
  }
  const handlers = classificationHandlers({
    // What the handler looks at of both.
    models: catalogResolver({
      find: () => ({ sku: "m", kind: "generation", enabled: true, file: "m", prices: noPrices }),
    } as unknown as Catalog),
    router: { open: async () => ({ score, close: () => undefined }) as unknown as Routed },
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
  const call = {
    body,
    principal: { kind: "key", id: "key_1" },
    membership: { organizationId: "org_1" },
    request: { header: () => null, signal: new AbortController().signal },
    header: () => undefined,
  } as unknown as CallOf<Table["createDecision"]>
  await handlers.createDecision(call)
  expect(seen).toEqual(["recorded", "1 counted", "shadow of seq_1"])
})
