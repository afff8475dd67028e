import { expect, test } from "vitest"
import { cascadeRule } from "../../../test/cascade-rule.ts"
import { idleSequence } from "../../../test/idle-sequence.ts"
import { routedTo, testModel, textCaller } from "../../../test/in-memory-gateway.ts"
import { systemClock } from "../../base/clock.ts"
import { Fault, type FaultCode } from "../../contract/errors.ts"
import type { Routed } from "../routing/router.ts"
import { type AskVersionDeps, askVersion } from "./score-texts.ts"
import { compileVersion } from "./version.ts"

const question = {
  type: "predicate",
  name: "refund",
  instructions: "Is it?",
  threshold: null,
  below: "answer",
  target_accuracy: null,
  calibration: null,
} as const
const version = compileVersion(
  { setId: "qs_1", setName: "mail", number: 1, hash: "1" },
  { model: "careful", questions: [question], calibration: null },
  new Map(),
)
const caller = textCaller("check")

const margins: Readonly<Record<string, number>> = { first: -1, next: 5 }

/** Asks a cascade whose second model fails so for the first time; its first model says no, its second yes. */
async function ask(failure: FaultCode): Promise<unknown> {
  let isFailing = true
  const open = async ({ model }: { readonly model: string }): Promise<Routed> => {
    if (model === "next" && isFailing) {
      isFailing = false
      throw new Fault(failure, "Cannot run the request", { retryAfterMs: 1 })
    }
    const score: Routed["score"] = async (_, { admit }) => {
      await admit(1)
      return { margins: Float64Array.of(margins[model] ?? 0), inputTokens: 1 }
    }
    return routedTo({ score })
  }
  const deps: AskVersionDeps = {
    models: {
      resolve: async () => ({
        stages: [[testModel({ sku: "first" })], [testModel({ sku: "next" })]],
        cascade: cascadeRule,
        isSplit: false,
        isFirstSplit: false,
        virtual: "careful",
      }),
    },
    meter: { begin: () => idleSequence() },
    router: { open },
    clock: systemClock,
    timeoutMs: 60_000,
  }
  const asked = { evidence: "text", questionNames: [], key: "" }
  const { answers } = await askVersion(deps, caller, version, asked, new AbortController().signal)
  return answers.map(({ verdict }) => verdict.value)
}

test("a later stage that is full is waited for, and one that fails is an error: the first answer does not stand for its", async () => {
  expect(await ask("overloaded")).toEqual(["yes"])
  await expect(ask("inference_failed")).rejects.toMatchObject({ code: "inference_failed" })
})
