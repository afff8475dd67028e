/** The lines of a batch's output and error files, and their answers as people read them. */
import type { DecisionAnswer } from "../../../src/contract/decisions.ts"
import { costHeader } from "../../../src/contract/endpoint.ts"
import { languageHeader } from "../../../src/contract/language.ts"
import { type BatchPath, sequenceOfLine } from "../../../src/contract/openai/batches.ts"
import { abstainedHeader, setHeader } from "../../../src/contract/question-sets/sets.ts"
import type { SystemOneAnswer } from "../../../src/contract/systemone.ts"
import { t, tn } from "../i18n/translate.ts"

export interface LineError {
  readonly code: string
  readonly message: string
  /** Of all records of its request: each attempt has one. Null where it was not run. */
  readonly requestId: string | null
}

export interface ResultLine {
  readonly customId: string
  /** The record of its request; null where it was not answered. */
  readonly sequenceId: string | null
  /** Null where there is an error. */
  readonly body: Readonly<Record<string, unknown>> | null
  /** Of a question set: the questions that it abstains from; null where no set answered. */
  readonly abstained: readonly string[] | null
  readonly error: LineError | null
  /** What it took; null of files that do not say. */
  readonly took: { readonly costUsd: number; readonly latencyMs: number } | null
  /** Of its text; null of files that do not say. */
  readonly language: string | null
}

/** As the server writes them. */
interface WireLine {
  readonly custom_id: string
  readonly response: {
    readonly status_code: number
    readonly request_id: string
    readonly latency_ms?: number
    readonly headers?: Readonly<Record<string, string>>
    readonly body: Readonly<Record<string, unknown>>
  } | null
  readonly error: { readonly code: string; readonly message: string } | null
}

const okMax = 299

export function readResultLines(text: string): ResultLine[] {
  return text.split("\n").flatMap((line) => (line === "" ? [] : [readLine(JSON.parse(line) as WireLine)]))
}

function readLine({ custom_id: customId, response, error }: WireLine): ResultLine {
  const none = { customId, sequenceId: null, body: null, abstained: null, took: null, language: null }
  if (!response) return { ...none, error: { ...(error ?? unknownError), requestId: null } }
  const { request_id: requestId, body, headers, latency_ms: latencyMs } = response
  if (response.status_code > okMax) return { ...none, error: { ...refusalOf(body), requestId } }
  const cost = headers?.[costHeader]
  const took = latencyMs === undefined || cost === undefined ? null : { costUsd: Number(cost), latencyMs }
  return {
    customId,
    sequenceId: sequenceOfLine(requestId),
    body,
    abstained: abstainedOf(headers),
    error: null,
    took,
    language: headers?.[languageHeader] ?? null,
  }
}

function abstainedOf(headers: Readonly<Record<string, string>> = {}): readonly string[] | null {
  if (headers[setHeader] === undefined) return null
  return headers[abstainedHeader]?.split(",") ?? []
}

const unknownError = { code: "internal", message: t("No answer") }

function refusalOf(body: Readonly<Record<string, unknown>>): { code: string; message: string } {
  const { code, message, type } = (body["error"] ?? {}) as {
    code?: string | null
    message?: string
    type?: string
  }
  return { code: code ?? type ?? unknownError.code, message: message ?? unknownError.message }
}

export interface ShownAnswer {
  readonly name: string
  readonly answer: string
  /** Of the answer; null for texts. */
  readonly probability: number | null
  /** The mean of the levels. */
  readonly score: number | null
  /** Of a question set: the answer, or `abstain`; null where no set answered. */
  readonly verdict: string | null
}

const abstention = "abstain"

/** `names` are those of the questions, in their order, where they are known. */
export function shownAnswers(
  endpoint: BatchPath,
  { body, abstained }: Pick<ResultLine, "body" | "abstained">,
  names: readonly string[],
): ShownAnswer[] {
  const verdictOf = (name: string, answer: string): string | null =>
    abstained && (abstained.includes(name) ? abstention : answer)
  return body === null
    ? []
    : answersOf(endpoint, body, names).map((one) => ({ ...one, verdict: verdictOf(one.name, one.answer) }))
}

type Answer = Omit<ShownAnswer, "verdict">

function answersOf(
  endpoint: BatchPath,
  body: Readonly<Record<string, unknown>>,
  names: readonly string[],
): Answer[] {
  switch (endpoint) {
    case "/v1/decisions":
      return (body["answers"] as readonly DecisionAnswer[]).map((answer, index) => ({
        name: names[index] ?? answer.name ?? `question_${index + 1}`,
        ...decided(answer),
      }))
    case "/v1/systemone":
      return Object.entries(body["answers"] as Record<string, SystemOneAnswer>).map(([name, answer]) => ({
        name,
        ...ofSystemOne(answer),
      }))
    case "/v1/chat/completions":
    case "/v1/responses":
    case "/v1/embeddings":
    case "/v1/messages":
      return [{ name: "answer", answer: textOf(endpoint, body), probability: null, score: null }]
  }
}

type Decided = Omit<Answer, "name">

function decided(answer: DecisionAnswer): Decided {
  switch (answer.type) {
    case "predicate":
      return yesOrNo(answer.probability)
    case "choice": {
      const found = answer.probabilities.find(({ value }) => value === answer.choice)
      return { answer: String(answer.choice), probability: found?.probability ?? 0, score: null }
    }
    case "score": {
      const [best] = answer.probabilities.toSorted((a, b) => b.probability - a.probability)
      return { answer: best?.label ?? "", probability: best?.probability ?? 0, score: answer.score }
    }
    case "refusal":
      return { answer: "refused", probability: null, score: null }
  }
}

const half = 0.5
const yesOrNo = (yes: number): Decided => ({
  answer: yes >= half ? "yes" : "no",
  probability: yes >= half ? yes : 1 - yes,
  score: null,
})

function ofSystemOne(answer: SystemOneAnswer): Decided {
  switch (answer.type) {
    case "noul":
      return yesOrNo(answer.noul)
    case "choice":
      return { answer: answer.choice, probability: answer.probabilities[answer.choice] ?? 0, score: null }
    case "score": {
      const [best] = Object.entries(answer.probabilities).toSorted(([, a], [, b]) => b - a)
      return { answer: best?.[0] ?? "", probability: best?.[1] ?? 0, score: answer.score }
    }
  }
}

interface ChatBody {
  readonly choices?: readonly { readonly message?: { readonly content?: string | null } }[]
}
interface MessageBody {
  readonly content?: readonly { readonly text?: string }[]
}

interface ResponseBody {
  readonly output?: readonly { readonly content?: readonly { readonly text?: string }[] }[]
}

function textOf(endpoint: BatchPath, body: Readonly<Record<string, unknown>>): string {
  if (endpoint === "/v1/embeddings") {
    const many = (body["data"] as readonly unknown[] | undefined)?.length ?? 0
    return tn(many, "{count} vector", "{count} vectors")
  }
  if (endpoint === "/v1/chat/completions")
    return (body as ChatBody).choices?.[0]?.message?.content ?? JSON.stringify(body)
  const parts =
    endpoint === "/v1/messages"
      ? (body as MessageBody).content
      : (body as ResponseBody).output?.flatMap(({ content = [] }) => content)
  return parts?.map(({ text = "" }) => text).join("") ?? JSON.stringify(body)
}
