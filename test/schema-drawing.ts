/** Answers of a model with random weights to random schemas, through the engine that answers chats: ajv accepts each. */
import type { ValidateFunction } from "ajv"
import fc from "fast-check"
import { SchemaError, schemaGrammar, shortestText } from "@umpire/schema-grammar"
import { expect } from "vitest"
import type { GenerateWork, GenerationUsage, JsonObject } from "../src/engine/engine.ts"
import { LocalEngine } from "../src/engine/generate/local-engine.ts"
import { randomChatModel } from "./models.ts"
import { randomSchema } from "../packages/schema-grammar/test/random-schemas.ts"
import { validatorOf } from "../packages/schema-grammar/test/sampling.ts"

/** Tokens beyond the shortest answer: enough for the model to take ways of its own. */
const TOKENS_MORE = 24
const ALONGSIDE = 8
const signal = new AbortController().signal

export interface DrawingCounts {
  answered: number
  refused: number
  /** Ended by the model itself, before the limit. */
  whole: number
  tokens: number
  /** Refer to themselves in a way that ajv does not end with. */
  endless: number
}

export async function drawAnswers(count: number, seed: number): Promise<DrawingCounts> {
  const engine = new LocalEngine({
    modelFile: await randomChatModel(),
    kind: "generation",
    memoryBytes: 64 * 1024 * 1024,
    waitingMax: 1000,
    gpu: false,
    threads: 1,
  })
  const counts: DrawingCounts = { answered: 0, refused: 0, whole: 0, tokens: 0, endless: 0 }
  const waiting = fc.sample(randomSchema, { numRuns: count, seed }).entries()
  const worker = async (): Promise<void> => {
    for (const [index, schema] of waiting) await draw(engine, schema, seed + index, counts)
  }
  try {
    await Promise.all(Array.from({ length: ALONGSIDE }, worker))
  } finally {
    await engine.close()
  }
  return counts
}

async function draw(
  engine: LocalEngine,
  schema: JsonObject,
  seed: number,
  counts: DrawingCounts,
): Promise<void> {
  const limit = limitOf(schema)
  if (limit === null) {
    counts.refused++
    return
  }
  let text = ""
  let tokens = 0
  const call = {
    signal,
    admit: async () => limit,
    onUsage: ({ outputTokens }: GenerationUsage) => void (tokens = outputTokens),
  }
  for await (const event of engine.generate(work(schema, seed, limit), call)) {
    if (event.kind === "text") text += event.text
    else if (event.kind === "end" && event.reason === "stop") counts.whole++
  }
  counts.answered++
  counts.tokens += tokens
  const validate = validatorOf(schema)
  const isValid = outcome(validate, JSON.parse(text))
  if (isValid === null) counts.endless++
  else if (!isValid) expect.fail(`${text} for ${JSON.stringify(schema)}: ${JSON.stringify(validate.errors)}`)
}

/** Null for a schema that is refused, as the engine does. */
function limitOf(schema: JsonObject): number | null {
  try {
    const shortest = shortestText(schemaGrammar(schema, { strict: true })) ?? ""
    return Buffer.byteLength(shortest) + TOKENS_MORE
  } catch (error) {
    expect(error, JSON.stringify(schema)).toBeInstanceOf(SchemaError)
    return null
  }
}

function outcome(validate: ValidateFunction, value: unknown): boolean | null {
  try {
    return validate(value)
  } catch (error) {
    if (error instanceof RangeError) return null
    throw error
  }
}

const work = (schema: JsonObject, seed: number, outputTokensMax: number): GenerateWork => ({
  organizationId: "org_test",
  messages: [{ role: "user", content: "JSON" }],
  tools: [],
  toolChoice: "auto",
  parallelToolCalls: true,
  format: { kind: "json_schema", name: "thing", schema, strict: true },
  sampling: { temperature: 1, topP: null, seed, frequencyPenalty: 0, presencePenalty: 0, logitBias: {} },
  stop: [],
  topLogprobs: null,
  outputTokensMax,
  truncate: false,
  effort: null,
})
