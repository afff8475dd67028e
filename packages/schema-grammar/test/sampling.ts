/** Texts of a grammar as a model with random weights would write them, and the validators that they are checked with. */
import { Ajv, type Options, type ValidateFunction } from "ajv"
import AjvDraft04 from "ajv-draft-04"
import { Ajv2019 } from "ajv/dist/2019.js"
import { Ajv2020 } from "ajv/dist/2020.js"
import draft06 from "ajv/dist/refs/json-schema-draft-06.json" with { type: "json" }
import draft07 from "ajv/dist/refs/json-schema-draft-07.json" with { type: "json" }
import type { JsonObject } from "../src/json-object.ts"
import { type Grammar, GrammarPath } from "../src/grammar.ts"

/** A number from zero up to, and without, one; the same ones for the same seed. */
export function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state / 0x80000000
  }
}

/** Every character that the grammar allows may come next, until the limit: then the shortest end is written. */
export function sampleText(grammar: Grammar, random: () => number, charactersMax: number): string {
  const path = new GrammarPath(grammar)
  let written = ""
  while (written.length < charactersMax && !path.ended) {
    if (path.complete && random() < 0.3) return written
    const ranges = path.nextRanges()
    const [low, high] = ranges[Math.floor(random() * ranges.length)] ?? [0, 0]
    const character = String.fromCodePoint(low + Math.floor(random() * (Math.min(high, low + 500) - low + 1)))
    if (!path.advance(character))
      throw new Error(`the grammar offers ${character} and refuses it: ${written}`)
    written += character
  }
  return path.complete ? written : written + path.shortestEnd()
}

const options: Options = {
  strict: false,
  logger: false,
  validateFormats: false,
  validateSchema: false,
  multipleOfPrecision: 8,
}

/** By the draft that the schema names; the latest when it names none. */
export function validatorOf(schema: JsonObject): ValidateFunction {
  const draft = typeof schema["$schema"] === "string" ? schema["$schema"] : ""
  const compile = (unicodeRegExp: boolean): ValidateFunction => {
    const given = { ...options, unicodeRegExp }
    const copy = structuredClone(schema)
    if (/draft-0[34]/.test(draft)) return new AjvDraft04.default(given).compile(copy)
    if (/draft-0[67]/.test(draft)) return new Ajv(given).addMetaSchema(draft06).compile(copy)
    return (draft.includes("2019-09") ? new Ajv2019(given) : new Ajv2020(given))
      .addMetaSchema(draft06)
      .addMetaSchema(draft07)
      .compile(copy)
  }
  try {
    return compile(true)
  } catch {
    // Some patterns are only valid by the older syntax.
    return compile(false)
  }
}
