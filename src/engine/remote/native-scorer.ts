/** Decisions at a worker that answers /v1/decisions or /v1/systemone itself: it is asked the caller's own questions, in its own words for them. */
import { objectOf } from "../../base/json.ts"
import { Fault } from "../../contract/errors.ts"
import { promptText } from "../branch.ts"
import type { ScoreEngine } from "../engine.ts"
import { type HttpClient, type Json, garbage } from "./http-client.ts"
import { type AskedOption, type AskedQuestion, describedOption, marginsOf, questionsOf } from "./questions.ts"
import type { RemoteScoredModel } from "./remote-scorer.ts"

/** Around each text the worker writes a frame of its own. */
const TOKENS_PER_TEXT = 64

/** How an endpoint is asked, and where its probabilities stand. */
export interface NativeWire {
  readonly path: string
  body(model: string, evidence: string, questions: readonly AskedQuestion[]): Json
  /** The probability of each option of each question; throws Fault `invalid_worker_response`. */
  read(answer: Json, questions: readonly AskedQuestion[]): number[][]
}

export function nativeScorer(
  client: HttpClient,
  model: Pick<RemoteScoredModel, "name">,
  wire: NativeWire,
): Pick<ScoreEngine, "score"> {
  return {
    score: async ({ evidence, branches }, { admit, signal }) => {
      const bytes = branches.reduce(
        (sum, branch) => sum + Buffer.byteLength(promptText(branch)),
        Buffer.byteLength(evidence),
      )
      // A token has at least one byte; the worker's own count takes its place when it has answered.
      const inputTokensMost = bytes + (branches.length + 1) * TOKENS_PER_TEXT
      await admit(inputTokensMost)
      const questions = questionsOf(branches)
      const answer = await client.json(wire.path, wire.body(model.name, evidence, questions), signal)
      const read = objectOf(answer)
      return {
        margins: marginsOf(questions, wire.read(read, questions)),
        // More than was reserved cannot be charged.
        inputTokens: Math.min(inputTokensMost, tokensOf(read)),
      }
    },
  }
}

export const systemOneWire: NativeWire = {
  path: "/v1/systemone",
  body: (model, state, questions) => ({
    model,
    state,
    questions: Object.fromEntries(questions.map((question, index) => [`q${index}`, systemOneOf(question)])),
  }),
  read: ({ answers }, questions) =>
    questions.map(({ type, options }, index) => {
      const id = `q${index}`
      const { noul, probabilities } = objectOf(objectOf(answers)[id])
      if (type === "predicate") return yesAndNo(noul, id)
      const given = objectOf(probabilities)
      return options.map(({ value }, level) => {
        const name = type === "score" ? String(level) : value
        return probability(Object.hasOwn(given, name) ? given[name] : undefined, id)
      })
    }),
}

export const decisionsWire: NativeWire = {
  path: "/v1/decisions",
  body: (model, input, questions) => ({ model, input, questions: questions.map(decisionOf) }),
  read: ({ answers }, questions) =>
    questions.map(({ type, options }, index) => {
      const id = `answer ${index}`
      const { probability: yes, probabilities } = objectOf(Array.isArray(answers) ? answers[index] : null)
      if (type === "predicate") return yesAndNo(yes, id)
      const given: unknown[] = Array.isArray(probabilities) ? probabilities : []
      return options.map((_, at) => probability(objectOf(given[at])["probability"], id))
    }),
}

function systemOneOf({ type, instructions, options }: AskedQuestion): Json {
  switch (type) {
    case "predicate": {
      const [yes, no] = options.map(({ description }) => description)
      const criteria = { ...(yes ? { true: yes } : {}), ...(no ? { false: no } : {}) }
      return { type: "noul", instructions, ...(Object.keys(criteria).length > 0 ? { criteria } : {}) }
    }
    case "choice": {
      const criteria = options.map(({ value, description }) => [value, description || value] as const)
      return { type, instructions, criteria: Object.fromEntries(criteria) }
    }
    case "score":
      return { type, instructions, criteria: options.map(describedOption) }
  }
}

const described = ({ description }: AskedOption): Json => (description === "" ? {} : { description })

function decisionOf({ type, instructions, options }: AskedQuestion): Json {
  switch (type) {
    case "predicate": {
      const [yes, no] = options.map(({ description }) => description)
      const meanings = `${yes ? `\nYes means: ${yes}` : ""}${no ? `\nNo means: ${no}` : ""}`
      return { type, instructions: `${instructions}${meanings}` }
    }
    case "choice":
      return { type, instructions, choices: options.map((one) => ({ value: one.value, ...described(one) })) }
    case "score":
      return { type, instructions, levels: options.map((one) => ({ label: one.value, ...described(one) })) }
  }
}

function tokensOf({ usage }: Json): number {
  const tokens = objectOf(usage)["input_tokens"]
  if (typeof tokens !== "number" || !Number.isSafeInteger(tokens) || tokens < 0)
    throw garbage("it does not say how many tokens it read")
  return tokens
}

function yesAndNo(value: unknown, id: string): number[] {
  const yes = probability(value, id)
  return [yes, 1 - yes]
}

function probability(value: unknown, id: string): number {
  if (typeof value === "number" && value >= 0 && value <= 1) return value
  throw new Fault("invalid_worker_response", `Cannot use what the worker answered: ${id} lacks a probability`)
}
