/** The official test suite of JSON Schema, keyword by keyword: what is compiled never allows what the suite calls invalid. */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"
import type { JsonObject } from "../src/json-object.ts"
import { GrammarPath } from "../src/grammar.ts"
import { schemaGrammar } from "../src/compile.ts"
import { randomNumbers, sampleText, validatorOf } from "./sampling.ts"

interface Group {
  readonly description: string
  readonly schema: JsonObject
  readonly tests: readonly { readonly data: unknown; readonly valid: boolean }[]
}

const suite = join(dirname(fileURLToPath(import.meta.resolve("json-schema-test-suite"))), "tests", "draft4")
const keywords = readdirSync(suite).filter((file) => file.endsWith(".json"))
/** Schemas that point to other documents are refused; everything else is enforced. */
const refused: Readonly<Record<string, number>> = {
  "refRemote.json": 4,
}

test.each(keywords)("%s is enforced or refused, and never wrong", (file) => {
  const groups = JSON.parse(readFileSync(join(suite, file), "utf8")) as Group[]
  let refusals = 0
  for (const { schema, tests, description } of groups) {
    let grammar
    try {
      grammar = schemaGrammar(schema, { strict: true })
    } catch {
      refusals++
      continue
    }
    for (const { data, valid } of tests) {
      const path = new GrammarPath(grammar)
      const isWritten = path.advance(JSON.stringify(data)) && path.complete
      if (!valid) expect(isWritten, `${description}: ${JSON.stringify(data)}`).toBe(false)
    }
    const draft04 = { $schema: "http://json-schema.org/draft-04/schema#", ...schema }
    const validate = validatorOf(draft04)
    const random = randomNumbers(4)
    for (let index = 0; index < 20; index++) {
      const text = sampleText(grammar, random, 100)
      expect(validate(JSON.parse(text)), `${description}: ${text}`).toBe(true)
    }
  }
  expect(refusals).toBe(refused[file] ?? 0)
})
