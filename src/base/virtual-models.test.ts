import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { LanguageTag, languageTags } from "../contract/language.ts"
import { type VirtualRule, virtualModelLimits } from "../contract/platform/virtual-models.ts"
import type { Model } from "./catalog.ts"
import {
  type Choosing,
  type VirtualModel,
  VirtualModelError,
  checkVirtual,
  choosingNothing,
  resolveVirtual,
} from "./virtual-models.ts"

const model = (sku: string, changes: Partial<Model> = {}): Model =>
  ({ sku, kind: "generation", file: "", enabled: true, ...changes }) as Model

const models = [
  model("a"),
  model("b"),
  model("c"),
  model("encoder", { file: "e.onnx" }),
  model("vectors", { kind: "embedding" }),
]

const cascade = (...members: string[]): VirtualRule => ({
  cascade: {
    models: members,
    thresholds: { predicate: 0.9, choice: 0.8, score: 0.6 },
    on_failure: "answer",
    cost_max_usd: null,
    cost_max_day_usd: null,
    latency_max_ms: null,
  },
})

const virtual = (name: string, rule: VirtualRule): VirtualModel => ({
  name,
  rule,
  description: "",
  enabled: true,
})

function world(rules: Readonly<Record<string, VirtualRule>>) {
  const all = Object.entries(rules).map(([name, rule]) => virtual(name, rule))
  const find = (name: string) =>
    models.find(({ sku }) => sku === name) ?? all.find((one) => one.name === name) ?? null
  const named = (name: string): VirtualModel => all.find((one) => one.name === name) as VirtualModel
  return {
    all,
    find,
    uses: (name: string) => [...checkVirtual(find, named(name))],
    stages: (name: string, choosing: Partial<Choosing> = {}) =>
      resolveVirtual(find, named(name), { ...choosingNothing, ...choosing }).stages.map((stage) =>
        stage.map(({ sku }) => sku),
      ),
  }
}

const split = (weights: Readonly<Record<string, number>>): VirtualRule => ({
  split: Object.entries(weights).map(([name, weight]) => ({ model: name, weight })),
})

const byLanguage = (routes: Readonly<Record<string, string>>, otherwise: string): VirtualRule => ({
  language: {
    routes: Object.entries(routes).map(([name, tags]) => ({
      model: name,
      languages: tags.split(" ").map((tag) => LanguageTag.parse(tag)),
    })),
    otherwise,
  },
})

const level = (at: number) => Array.from({ length: 8 }, (_, index) => `s${at}-${index}`)
const aboveLevel = (at: number): VirtualRule =>
  at < 0 ? split({ a: 1, b: 1 }) : split(Object.fromEntries(level(at).map((name) => [name, 1])))

/** So many levels of eight splits, each of all splits of the level below; `x` is a split of the uppermost. */
function lattice(levels: number) {
  const rules = Array.from({ length: levels }, (_, at) =>
    level(at).map((name) => [name, aboveLevel(at - 1)] as const),
  )
  return world({ ...Object.fromEntries(rules.flat()), x: aboveLevel(levels - 1) })
}

describe("a virtual model", () => {
  test("comes to the models that its rules name, in order, each once", () => {
    const { stages, uses } = world({
      first: { fallback: ["a", "b"] },
      all: { fallback: ["first", "c", "again"] },
      again: { alias: "a" },
      two: cascade("encoder", "first"),
      named: { alias: "two" },
    })
    expect(stages("all")).toEqual([["a", "b", "c"]])
    expect(stages("named")).toEqual([["encoder"], ["a", "b"]])
    expect([uses("all"), uses("named")]).toEqual([["decisions", "generation"], ["decisions"]])
  })

  test("can do what all of its members can", () => {
    const { uses } = world({ mixed: { fallback: ["encoder", "a"] }, vector: { alias: "vectors" } })
    expect([uses("mixed"), uses("vector")]).toEqual([["decisions"], ["embedding"]])
  })

  test.each<[string, Record<string, VirtualRule>, RegExp]>([
    ["itself", { x: { alias: "x" } }, /leads back to itself: x -> x/],
    [
      "a cycle of three",
      { x: { alias: "y" }, y: { fallback: ["a", "z"] }, z: split({ x: 1, b: 1 }) },
      /x -> y -> z -> x/,
    ],
    ["a member that is not there", { x: { fallback: ["a", "gone"] } }, /x names gone/],
    [
      "a member that is a package to install",
      { x: { fallback: ["a", "umpire-decide-multilingual"] } },
      /is not in the catalog; npm install umpire-decide-multilingual where umpire is installed adds it/,
    ],
    ["a member twice", { x: { fallback: ["a", "a"] } }, /a twice/],
    ["weights that are all zero", { x: split({ a: 0, b: 0 }) }, /zero/],
    ["a split of vectors", { x: split({ a: 1, vectors: 1 }) }, /embeddings/],
    ["a language in two places", { x: byLanguage({ a: "en", b: "de en" }, "c") }, /two places for en/],
    ["a choice by language of vectors", { x: byLanguage({ vectors: "en" }, "a") }, /choice by language with/],
    ["a cascade with vectors", { x: cascade("encoder", "vectors") }, /embeddings/],
    ["a cascade in a fallback", { x: { fallback: ["y", "a"] }, y: cascade("encoder", "a") }, /cascade in it/],
    ["a cascade in a cascade", { x: cascade("encoder", "y"), y: cascade("a", "b") }, /cascade in it/],
  ])("is refused with %s", (_, rules, why) => {
    expect(() => world(rules).uses("x")).toThrow(why)
  })

  test("that comes to more models than a request may try is refused", () => {
    const inner = { fallback: ["a", "b", "c"] } satisfies VirtualRule
    const parts = Object.fromEntries(Array.from({ length: 6 }, (_, at) => [`f${at}`, inner]))
    expect(() => world({ ...parts, x: { fallback: Object.keys(parts) } }).uses("x")).toThrow(/18 models/)
  })

  test("is looked into once, however many others name it", () => {
    const { find, all } = lattice(virtualModelLimits.depthMax - 1)
    let found = 0
    const counted = (name: string) => {
      found++
      return find(name)
    }
    checkVirtual(counted, all.find(({ name }) => name === "x") as VirtualModel)
    // Each split names eight others at most.
    expect(found).toBeLessThanOrEqual(all.length * 8)
  })

  test("that is nested too deep is refused, also where what it names is known by then", () => {
    expect(() => lattice(virtualModelLimits.depthMax).uses("x")).toThrow(/nested deeper/)
    const { depthMax } = virtualModelLimits
    const chain = Array.from({ length: depthMax }, (_, at) => [
      `c${at}`,
      { alias: at === 0 ? "a" : `c${at - 1}` },
    ])
    const top = `c${depthMax - 2}`
    const rules = { ...Object.fromEntries(chain), longer: { alias: top }, x: { fallback: [top, "longer"] } }
    expect(() => world(rules).uses("x")).toThrow(/nested deeper than \d+: x -> longer -> c/)
  })
})

test("a choice by language comes to the model of the language, whatever the key", () => {
  const { stages, uses } = world({
    x: byLanguage({ encoder: "en unknown", careful: "de fr" }, "a"),
    careful: cascade("encoder", "b"),
    named: { alias: "x" },
    first: { fallback: ["x", "c"] },
    plain: byLanguage({ b: "en" }, "c"),
  })
  expect(uses("x")).toEqual(["decisions"])
  expect(stages("x", { language: "en", key: "1" })).toEqual([["encoder"]])
  expect(stages("x", { language: "fr", key: "2" })).toEqual([["encoder"], ["b"]])
  expect(stages("named", { language: "ja" })).toEqual([["a"]])
  expect(stages("x")).toEqual([["encoder"]])
  expect(() => uses("first")).toThrow(/cascade in it/)
  expect(stages("plain", { language: "unknown" })).toEqual([["c"]])
})

const names = ["v0", "v1", "v2", "v3"]
const anyRule: fc.Arbitrary<VirtualRule> = fc.oneof(
  fc.constantFrom(...names, "a", "b", "encoder").map((alias) => ({ alias })),
  fc
    .uniqueArray(fc.constantFrom(...names, "a", "b", "encoder", "vectors"), { minLength: 2 })
    .map((fallback) => ({
      fallback,
    })),
  fc
    .dictionary(fc.constantFrom(...names, "a", "b"), fc.nat(9), { minKeys: 2 })
    .map((weights) => split(weights)),
  fc
    .uniqueArray(fc.constantFrom(...names, "a", "encoder"), { minLength: 2 })
    .map((members) => cascade(...members)),
  fc
    .uniqueArray(fc.constantFrom(...names, "a", "b", "encoder"), { minLength: 2, maxLength: 2 })
    .map(([first = "", otherwise = ""]) => byLanguage({ [first]: "en" }, otherwise)),
)

const anyChoosing = fc.record({ key: fc.string(), language: fc.constantFrom(...languageTags) })

test("whatever rules name each other, a name is refused or comes to models that can do what it says", () => {
  fc.assert(
    fc.property(fc.tuple(anyRule, anyRule, anyRule, anyRule), anyChoosing, (rules, choosing) => {
      const scene = world(Object.fromEntries(names.map((name, at) => [name, rules[at] as VirtualRule])))
      for (const name of names) {
        let uses: string[]
        try {
          uses = scene.uses(name)
        } catch (error) {
          expect(error).toBeInstanceOf(VirtualModelError)
          continue
        }
        const stages = scene.stages(name, choosing)
        expect(stages.flat().length).toBeGreaterThan(0)
        expect(stages.flat().includes("encoder") && uses.includes("generation")).toBe(false)
        expect(scene.stages(name, choosing)).toEqual(stages)
      }
    }),
  )
})

test("a split in a later stage of a cascade leaves the first model the same for every key", () => {
  const { all, find } = world({
    x: split({ a: 1, b: 1 }),
    first: cascade("x", "c"),
    later: cascade("c", "x"),
    named: { alias: "later" },
    either: split({ later: 1, c: 1 }),
  })
  const splits = all.map((one) => {
    const { isSplit, isFirstSplit } = resolveVirtual(find, one, choosingNothing)
    return [one.name, isSplit, isFirstSplit]
  })
  expect(splits).toEqual([
    ["x", true, true],
    ["first", true, true],
    ["later", true, false],
    ["named", true, false],
    ["either", true, true],
  ])
})

test("a split gives each member its share, and the same key the same member", () => {
  const { stages } = world({ x: split({ a: 1, b: 3, c: 0 }) })
  const chosen = Array.from({ length: 4000 }, (_, at) => stages("x", { key: `key ${at}` })[0]?.[0])
  const share = (sku: string): number => chosen.filter((one) => one === sku).length / chosen.length
  expect(share("a")).toBeCloseTo(0.25, 1)
  expect(share("b")).toBeCloseTo(0.75, 1)
  expect(share("c")).toBe(0)
})
