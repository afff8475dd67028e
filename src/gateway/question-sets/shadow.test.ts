import { expect, test } from "vitest"
import { idleSequence } from "../../../test/idle-sequence.ts"
import { catalogResolver } from "../organization-access.ts"
import type { Catalog } from "../../base/catalog.ts"
import { systemClock } from "../../base/clock.ts"
import { createIds } from "../../base/ids.ts"
import { silentLog } from "../../base/log.ts"
import type { Principal } from "../../contract/access.ts"
import type { Database } from "../../store/sql.ts"
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
function scene(shadowQuestion: string, open: () => Promise<Routed>) {
  const seen: string[] = []
  const note = (what: string) => (): Promise<void> => {
    seen.push(what)
    return Promise.resolve()
  }
  const deps = {
    database: {} as Database,
    models: catalogResolver({
      find: () => ({ sku: "m", kind: "generation", enabled: true, file: "m.onnx" }),
    } as unknown as Catalog),
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
        shadow: { version: 2, model: null, share: 1 },
        reviewSampleRate: 0,
      },
      isKept: false,
      organizationId: "org_1",
      principal: {} as Principal,
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

test("a shadow that fails is recorded and logged, reserves nothing, and does not reach the request", async () => {
  const failed = Promise.withResolvers<Routed>()
  const { shadows, observe, seen } = scene("refund", () => failed.promise)
  observe()
  failed.reject(new Error("no worker"))
  await expect.poll(() => seen).toEqual(["opened", "recorded", "logged"])
  await shadows.close()
})
