import { expect, test } from "vitest"
import { idleSequence } from "../../../test/idle-sequence.ts"
import { catalogOf, catalogResolver, keyPrincipal } from "../../../test/in-memory-gateway.ts"
import { systemClock } from "../../base/clock.ts"
import { createIds } from "../../base/ids.ts"
import { silentLog } from "../../base/log.ts"
import type { Database } from "../../store/sql.ts"
import type { DayHold } from "../cascade-days.ts"
import type { Routed } from "../routing/router.ts"
import { type ShadowDeps, createShadows } from "./shadow.ts"
import { type AskedVersion, compileVersion } from "./version.ts"

const predicate = (name: string) =>
  ({ type: "predicate", name, instructions: "Is it?", threshold: null, below: "abstain" }) as const

function versionWith(number: number, name: string): AskedVersion {
  const settings = { target_accuracy: null, calibration: null }
  const content = { model: "m", questions: [{ ...predicate(name), ...settings }], calibration: null }
  return compileVersion({ setId: "qs_1", setName: "mail", number, hash: String(number) }, content, new Map())
}

/** A published version with the question `refund`, and a shadow that has this one. */
function scene(shadowQuestion: string, open: () => Promise<Routed>, hold: DayHold | null = () => undefined) {
  const seen: string[] = []
  const note = (what: string) => (): Promise<void> => {
    seen.push(what)
    return Promise.resolve()
  }
  const deps = {
    database: {} as Database,
    days: {
      count: ({ questions, unanswered }) => seen.push(`${questions} answered, ${unanswered} not`),
      hold: async () => hold,
    },
    models: catalogResolver(catalogOf()),
    sets: {
      find: async () => ({ version: versionWith(2, shadowQuestion), shadow: null, reviewSampleRate: 0 }),
    },
    ids: createIds(),
    log: Object.assign(Object.create(silentLog) as typeof silentLog, { warn: () => seen.push("logged") }),
    meter: {
      begin: () => idleSequence({ id: "seq_2", reserve: note("reserved"), finish: note("recorded") }),
    },
    router: {
      open: async () => {
        seen.push("opened")
        return await open()
      },
    },
    clock: systemClock,
    timeoutMs: 60_000,
  } satisfies ShadowDeps
  const shadows = createShadows(deps)
  const observe = (): void =>
    shadows.observe({
      found: {
        version: versionWith(1, "refund"),
        shadow: { version: 2, model: null, share: 1, costMaxDay: 1n },
        reviewSampleRate: 0,
      },
      isKept: false,
      escalated: [],
      organizationId: "org_1",
      principal: keyPrincipal,
      sequenceId: "seq_1",
      key: "",
      evidence: "text",
      verdicts: [
        {
          name: "refund",
          isPredicate: true,
          value: "yes",
          isAbstention: false,
          confidence: 1,
          isTaught: false,
        },
      ],
    })
  return { shadows, observe, seen }
}

test("a shadow that has none of the questions that were asked runs nothing", async () => {
  const { shadows, observe, seen } = scene("other", () => Promise.reject(new Error("not reached")))
  observe()
  await shadows.close()
  expect(seen).toEqual([])
})

test("a shadow that fails is recorded and logged, gives back what it held, and does not reach the request", async () => {
  const settled: bigint[] = []
  const { shadows, observe, seen } = scene(
    "refund",
    () => Promise.reject(new Error("no worker")),
    (ticks) => settled.push(ticks),
  )
  observe()
  await expect.poll(() => seen).toEqual(["opened", "recorded", "0 answered, 1 not", "logged"])
  expect(settled).toEqual([0n])
  await shadows.close()
})

test("a shadow that the budget of the day does not allow runs nothing, and is counted", async () => {
  const { shadows, observe, seen } = scene("refund", () => Promise.reject(new Error("not reached")), null)
  observe()
  await shadows.close()
  expect(seen).toEqual(["0 answered, 1 not"])
})

test("more than four are not begun, and are counted", async () => {
  const { observe, seen } = scene("refund", () => new Promise(() => undefined))
  for (let request = 0; request < 5; request++) observe()
  expect(seen).toEqual(["0 answered, 1 not"])
})
