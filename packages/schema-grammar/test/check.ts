/** What becomes of one real schema: compiled or refused, and whether ajv accepts what its grammar writes. */
import { Ajv } from "ajv"
import AjvDraft04 from "ajv-draft-04"
import { Ajv2019 } from "ajv/dist/2019.js"
import { Ajv2020 } from "ajv/dist/2020.js"
import { SchemaError } from "../src/budget.ts"
import type { JsonObject } from "../src/json-object.ts"
import { shortestText } from "../src/grammar.ts"
import { type SchemaGrammar, schemaGrammar } from "../src/compile.ts"
import { randomNumbers, sampleText, validatorOf } from "./sampling.ts"

export type Outcome = "compiled" | "refused" | "violated" | "not a schema" | "too large"

const TEXTS = 5
const CHARACTERS_MAX = 150

export class SchemaCheck {
  texts = 0
  /** Schemas that ajv does not compile. */
  unchecked = 0
  readonly #random: () => number
  readonly #drafts = {
    "04": new AjvDraft04.default({ strict: false, logger: false }),
    "07": new Ajv({ strict: false, logger: false }),
    "2019": new Ajv2019({ strict: false, logger: false }),
    "2020": new Ajv2020({ strict: false, logger: false }),
  }

  constructor(seed: number) {
    this.#random = randomNumbers(seed)
  }

  check(schema: JsonObject, bytesMax: number): { readonly outcome: Outcome; readonly detail: string } {
    if (Buffer.byteLength(JSON.stringify(schema)) > bytesMax) return { outcome: "too large", detail: "" }
    if (!this.#isSchema(schema)) return { outcome: "not a schema", detail: "" }
    let grammar: SchemaGrammar
    try {
      grammar = schemaGrammar(schema, { strict: true })
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error
      return { outcome: "refused", detail: error.message }
    }
    const invalid = this.#invalidText(schema, grammar)
    return invalid === null ? { outcome: "compiled", detail: "" } : { outcome: "violated", detail: invalid }
  }

  /** By the meta-schema of the draft that it names. */
  #isSchema(schema: JsonObject): boolean {
    const draft = typeof schema["$schema"] === "string" ? schema["$schema"] : ""
    const ajv = /draft-0[34]/.test(draft)
      ? this.#drafts["04"]
      : /draft-0[67]/.test(draft)
        ? this.#drafts["07"]
        : draft.includes("2019-09")
          ? this.#drafts["2019"]
          : this.#drafts["2020"]
    const { $schema: _, ...rest } = schema
    return ajv.validateSchema(rest) === true
  }

  #invalidText(schema: JsonObject, grammar: SchemaGrammar): string | null {
    let validate
    try {
      validate = validatorOf(schema)
    } catch {
      this.unchecked++
      return null
    }
    const texts = [
      shortestText(grammar) ?? "",
      ...Array.from({ length: TEXTS }, () => sampleText(grammar, this.#random, CHARACTERS_MAX)),
    ]
    for (const text of texts) {
      this.texts++
      if (!validate(JSON.parse(text))) return `${text}: ${JSON.stringify(validate.errors).slice(0, 300)}`
    }
    return null
  }
}
