/** Decisions at a worker that answers /v1/systemone itself: it is asked the caller's own questions, in its own words for them. */
import { Fault } from "../../contract/errors.ts"
import { type Branch, promptText } from "../branch.ts"
import type { ScoreEngine } from "../engine.ts"
import type { RemoteScoredModel } from "./remote-scorer.ts"
import { type HttpClient, garbage } from "./http-client.ts"

/** Probabilities this close to 0 or 1 have no finite margin in double precision. */
const PROBABILITY_LEAST = 1e-300
/** Around each text the worker writes a frame of its own. */
const TOKENS_PER_TEXT = 64

export function systemOneScorer(client: HttpClient, model: RemoteScoredModel): ScoreEngine {
  return {
    facts: async () => ({
      name: model.name,
      contextTokensMax: model.contextTokensMax,
      parameterCount: 0,
      quantization: model.quantization,
    }),
    score: async ({ evidence, branches }, { admit, signal }) => {
      const bytes = branches.reduce(
        (sum, branch) => sum + Buffer.byteLength(promptText(branch)),
        Buffer.byteLength(evidence),
      )
      // A token has at least one byte; the worker's own count takes its place when it has answered.
      const inputTokensMost = bytes + (branches.length + 1) * TOKENS_PER_TEXT
      await admit(inputTokensMost)
      const asked = toQuestions(branches)
      const questions = Object.fromEntries(asked.map(({ question }, index) => [`q${index}`, question]))
      const body = { model: model.name, state: evidence, questions }
      const answer = (await client.json("/v1/systemone", body, signal)) as SystemOneAnswer
      const probabilities = asked.flatMap(({ names }, index) => read(answer, `q${index}`, names))
      return {
        margins: Float64Array.from(probabilities, toMargin),
        // More than was reserved cannot be charged.
        inputTokens: Math.min(inputTokensMost, tokensOf(answer)),
      }
    },
    close: async () => await client.close(),
  }
}

interface Asked {
  readonly question: Readonly<Record<string, unknown>>
  /** What its probabilities are called, in the order of its branches; null for the one of yes. */
  readonly names: readonly string[] | null
}

interface SystemOneAnswer {
  readonly answers?: Readonly<Record<string, { noul?: unknown; probabilities?: unknown } | undefined>>
  readonly usage?: { readonly input_tokens?: unknown }
}

/** The branches of one question stand together and say how many they are. */
function toQuestions(branches: readonly Branch[]): Asked[] {
  const asked: Asked[] = []
  for (let at = 0; at < branches.length;) {
    const group = branches.slice(at, at + sizeOf(branches[at]))
    asked.push(...toQuestion(group))
    at += group.length
  }
  return asked
}

function sizeOf(branch: Branch | undefined): number {
  if (branch?.kind === "choice") return branch.options ?? 1
  return branch?.kind === "score" ? branch.levels : 1
}

function toQuestion(group: readonly Branch[]): Asked[] {
  const [first] = group
  if (first?.kind === "choice" && first.options !== undefined) {
    const options = group.flatMap((branch) => (branch.kind === "choice" ? [branch] : []))
    const criteria = options.map(({ value, description }) => [value, description] as const)
    // true and "true" have one name there, and a blank one is refused: such options are asked one by one.
    if (new Set(criteria.map(([value]) => value)).size < criteria.length) return group.map(toNoul)
    if (criteria.some(([value]) => value.trim() === "")) return group.map(toNoul)
    const question = {
      type: "choice",
      instructions: first.question,
      criteria: Object.fromEntries(criteria.map(([value, description]) => [value, description || value])),
    }
    return [{ question, names: criteria.map(([value]) => value) }]
  }
  if (first?.kind === "score") {
    const levels = group.flatMap((branch) => (branch.kind === "score" ? [branch] : []))
    const criteria = levels.map(({ label, description }) =>
      description === "" ? label : label === "" ? description : `${label} - ${description}`,
    )
    const question = { type: "score", instructions: first.question, criteria }
    return [{ question, names: levels.map((_, level) => String(level)) }]
  }
  return group.map(toNoul)
}

function toNoul(branch: Branch): Asked {
  if (branch.kind !== "predicate")
    return { question: { type: "noul", instructions: promptText(branch).trim() }, names: null }
  const { question, yesMeans, noMeans } = branch
  const criteria = {
    ...(yesMeans === "" ? {} : { true: yesMeans }),
    ...(noMeans === "" ? {} : { false: noMeans }),
  }
  const asked = { type: "noul", instructions: question }
  return { question: Object.keys(criteria).length > 0 ? { ...asked, criteria } : asked, names: null }
}

function tokensOf({ usage }: SystemOneAnswer): number {
  const tokens = usage?.input_tokens
  if (typeof tokens !== "number" || !Number.isSafeInteger(tokens) || tokens < 0)
    throw garbage("it does not say how many tokens it read")
  return tokens
}

function read({ answers }: SystemOneAnswer, id: string, names: readonly string[] | null): number[] {
  const answer = answers?.[id]
  if (names === null) return [probability(answer?.noul, id)]
  const given = (answer?.probabilities ?? {}) as Readonly<Record<string, unknown>>
  return names.map((name) => probability(Object.hasOwn(given, name) ? given[name] : undefined, id))
}

function probability(value: unknown, id: string): number {
  if (typeof value === "number" && value >= 0 && value <= 1) return value
  throw new Fault("invalid_worker_response", `Cannot use what the worker answered: ${id} lacks a probability`)
}

/** Probabilities that sum to one are what margins made of them are normalised to again. */
function toMargin(yes: number): number {
  return Math.log(Math.max(yes, PROBABILITY_LEAST)) - Math.log(Math.max(1 - yes, PROBABILITY_LEAST))
}
