/** Who answers the rows of `umpire label`: a server, by questions or by a question set, or the model in this process. */
import { createHash } from "node:crypto"
import type { DecisionQuestion, DecisionsRequest, DecisionsResponse } from "../contract/decisions.ts"
import { connectApi, connectServer } from "./api-client.ts"
import { type CliContext, UsageError, numberOf, numbersBetween, text } from "./command.ts"
import { type LabelQuestion, readAnswer, readVerdict } from "./label-answers.ts"
import type { LabelAsk } from "./label-run.ts"
import { questionOptions, readQuestions } from "./questions.ts"

export interface LabelAsker {
  readonly questions: readonly LabelQuestion[]
  /** The model that answers, for counting tokens. */
  readonly model: string
  /** Of everything that is asked beside the text: another hash is another run. */
  readonly hash: string
  /** Of a million tokens; null where it is not known. */
  readonly priceUsd: number | null
  readonly ask: LabelAsk
  close(): Promise<void>
}

/** The model in this process; the composition root brings it. */
export interface LocalDecisions {
  readonly priceUsd: number
  decide(request: DecisionsRequest): Promise<DecisionsResponse>
  /** What `decide` would count, without running the model. */
  countTokens(request: DecisionsRequest): Promise<number>
  close(): Promise<void>
}

export type OpenLocal = (context: CliContext, model: string) => Promise<LocalDecisions>

export async function openAsker(context: CliContext, openLocal: OpenLocal): Promise<LabelAsker> {
  const set = text(context, "set")?.replace(/^set:/, "")
  const isLocal = context.values["local"] === true
  if (set === undefined) return isLocal ? await localAsker(context, openLocal) : await serverAsker(context)
  const own = Object.keys(questionOptions).find((name) => context.values[name] !== undefined)
  if (own !== undefined)
    throw new UsageError(
      `--set asks the questions of the set: leave --${own} out, or add the question to the set`,
    )
  if (isLocal)
    throw new UsageError(
      "a question set is kept by a server: leave --local out, or give its file by --questions",
    )
  return await setAsker(context, set)
}

interface Asked {
  readonly model: string
  readonly questions: readonly LabelQuestion[]
  readonly request: (input: string) => DecisionsRequest
}

async function readAsked(context: CliContext): Promise<Asked> {
  const given = await readQuestions(context)
  if (given.length === 0)
    throw new UsageError("no question: give --yes-no, --choice, --score, --questions or --set")
  const threshold = numberOf(context, "threshold", numbersBetween(0, 1)) ?? null
  const questions = given.map((question) => ({
    question: plain(question),
    threshold: thresholdOf(question) ?? threshold,
  }))
  const model = text(context, "model") ?? context.environment["UMPIRE_MODEL"] ?? "umpire-decide"
  const asked = questions.map(({ question }) => question)
  return { model, questions, request: (input) => ({ model, input, questions: asked }) }
}

/** The file of a question set has settings that a request has not. */
function plain(question: DecisionQuestion): DecisionQuestion {
  const { name = null, instructions } = question
  const named = name === null ? {} : { name }
  switch (question.type) {
    case "predicate":
      return { type: "predicate", ...named, instructions }
    case "choice":
      return { type: "choice", ...named, instructions, choices: question.choices }
    case "score":
      return { type: "score", ...named, instructions, levels: question.levels }
    default:
      throw new UsageError("a question is of the type predicate, choice or score")
  }
}

function thresholdOf(question: DecisionQuestion): number | null {
  // The settings of a set's question stand beside what a request knows of it.
  const { threshold, below } = question as { threshold?: number | null; below?: string }
  return below === "answer" ? null : (threshold ?? null)
}

const hashOf = (value: unknown): string =>
  createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 32)

async function localAsker(context: CliContext, openLocal: OpenLocal): Promise<LabelAsker> {
  const { model, questions, request } = await readAsked(context)
  const local = await openLocal(context, model)
  return {
    questions,
    model,
    hash: hashOf({ local: model, questions }),
    priceUsd: 0,
    ask: async (input) => readResponse(await local.decide(request(input)), questions),
    close: async () => await local.close(),
  }
}

async function serverAsker(context: CliContext): Promise<LabelAsker> {
  const { model, questions, request } = await readAsked(context)
  const { url, client } = connectServer(context)
  return {
    questions,
    model,
    hash: hashOf({ url, model, questions }),
    priceUsd: await findPrice(context, model),
    ask: async (input, idempotencyKey) => {
      const headers = { "idempotency-key": idempotencyKey }
      return readResponse(await client.createDecision({ body: request(input), headers }), questions)
    },
    close: async () => undefined,
  }
}

function readResponse({ answers, usage }: DecisionsResponse, questions: readonly LabelQuestion[]) {
  return {
    answers: answers.map((answer, index) => readAnswer(answer, questions[index]?.threshold ?? null)),
    tokens: usage.input_tokens,
  }
}

/** The version is found once, so that all rows are answered by the same. */
async function setAsker(context: CliContext, reference: string): Promise<LabelAsker> {
  const { client, organizationId: org_id } = await connectApi(context)
  const [name = "", label] = reference.split("@")
  const params = { org_id, set_id: name }
  const { production_version } = await client.getQuestionSet({ params })
  const wanted = label ?? (production_version === null ? "latest" : "production")
  const found = await client.getQuestionSetVersion({ params: { ...params, version: wanted } })
  const version = String(found.version)
  if (found.questions.length === 0) throw new UsageError(`the question set ${name} has no questions`)
  return {
    questions: found.questions.map((question) => ({
      question: plain(question),
      threshold: question.threshold,
    })),
    model: found.model,
    hash: hashOf({ set: name, version }),
    priceUsd: await findPrice(context, found.model),
    ask: async (input, idempotencyKey) => {
      const { answers, usage } = await client.decideQuestionSet({
        params,
        body: { input, version },
        headers: { "idempotency-key": idempotencyKey },
      })
      return { answers: answers.map(readVerdict), tokens: usage.input_tokens }
    },
    close: async () => undefined,
  }
}

/** A key that may only run inference cannot see prices. A server that cannot be reached is told now, before rows are read. */
async function findPrice(context: CliContext, model: string): Promise<number | null> {
  try {
    const { client, organizationId: org_id } = await connectApi(context)
    const models = await client.listOrganizationModels({ params: { org_id } })
    return models.find(({ model_sku }) => model_sku === model)?.price_m_input_tokens_usd ?? null
  } catch (error) {
    if (error instanceof UsageError) throw error
    return null
  }
}
