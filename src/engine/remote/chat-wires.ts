/** One whole answer of a chat model about evidence, as OpenAI's and Anthropic's protocols ask for it. */
import { isObject, objectOf } from "../../base/json.ts"
import type { TokenLogprob } from "../engine.ts"
import { type Json, garbage, given } from "./http-client.ts"

/** What the answer is: a first token with its alternatives, JSON of a schema, or plain text. */
export type AnswerForm =
  | { readonly kind: "logprobs"; readonly top: number }
  | { readonly kind: "schema"; readonly schema: Json }
  | { readonly kind: "text" }

export interface ChatQuestion {
  readonly instructions: string
  /** The same for every question about a text, so that a provider may have read it before. */
  readonly evidence: string
  /** Whether several requests are made about it: to write it to a cache may cost more than to read it once. */
  readonly isEvidenceShared: boolean
  readonly question: string
  readonly form: AnswerForm
  readonly outputTokensMax: number
  /** Reasoning models refuse any temperature. */
  readonly isCold: boolean
  /** An answer that was not in the form, which is asked for again. */
  readonly retryOf: string | null
}

export interface ChatUsage {
  /** Cached ones too. */
  readonly inputTokens: number
  readonly cachedInputTokens: number
  /** Those of its reasoning too. */
  readonly outputTokens: number
}

export interface ChatReply {
  /** JSON where a schema was asked for. */
  readonly text: string
  /** Of the first token. */
  readonly top: TokenLogprob["top"]
  /** The answer ended at the limit of tokens. */
  readonly isCut: boolean
  readonly usage: ChatUsage
}

export interface ChatWire {
  readonly path: string
  /** Whether it can show the alternatives of a token. */
  readonly hasLogprobs: boolean
  body(question: ChatQuestion, options: ChatOptions): Json
  read(answer: unknown): ChatReply
}

interface ChatOptions {
  readonly model: string
  /** What limits the answer's length. */
  readonly lengthField: string
  readonly noThinking: Json
}

const AGAIN = "That was not in the form that was asked for. Answer again, in exactly that form."

const count = (value: unknown): number =>
  typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : 0
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

export const chatCompletions: ChatWire = {
  path: "/v1/chat/completions",
  hasLogprobs: true,
  body: (asked, { model, lengthField, noThinking }) => ({
    model,
    messages: [
      { role: "system", content: asked.instructions },
      { role: "user", content: `${asked.evidence}\n${asked.question}` },
      ...retried(asked),
    ],
    [lengthField]: asked.outputTokensMax,
    ...given("temperature", asked.isCold ? 0 : null),
    ...(asked.form.kind === "logprobs" ? { logprobs: true, top_logprobs: asked.form.top } : {}),
    ...(asked.form.kind === "schema"
      ? {
          response_format: {
            type: "json_schema",
            json_schema: { name: "answers", strict: true, schema: asked.form.schema },
          },
        }
      : {}),
    ...noThinking,
  }),
  read(answer) {
    const { choices, usage } = objectOf(answer)
    const [choice] = listOf(choices)
    if (!isObject(choice) || !isObject(usage)) throw garbage("it has no message, or no usage")
    const { content } = objectOf(choice["message"])
    const [first] = listOf(objectOf(choice["logprobs"])["content"])
    return {
      text: typeof content === "string" ? content : "",
      top: listOf(objectOf(first)["top_logprobs"])
        .filter(isObject)
        .flatMap(({ token, logprob }) =>
          typeof token === "string" && typeof logprob === "number" ? [{ token, logprob }] : [],
        ),
      isCut: choice["finish_reason"] === "length",
      usage: {
        inputTokens: count(usage["prompt_tokens"]),
        cachedInputTokens: Math.min(
          count(objectOf(usage["prompt_tokens_details"])["cached_tokens"]),
          count(usage["prompt_tokens"]),
        ),
        outputTokens: count(usage["completion_tokens"]),
      },
    }
  },
}

/** The same whatever is asked: a cache holds what stands before a mark, and tools stand before everything. */
const TOOL = {
  name: "answers",
  description: "Takes an answer for each of the questions",
  input_schema: {
    type: "object",
    properties: {
      answers: {
        type: "array",
        items: {
          type: "object",
          properties: {
            question: { type: "string", description: "Its name, such as q1" },
            option: { type: "string", description: "The number of the option" },
            confidence: { type: "integer", minimum: 0, maximum: 100 },
          },
          required: ["question", "option", "confidence"],
        },
      },
    },
    required: ["answers"],
  },
}

export const anthropicMessages: ChatWire = {
  path: "/v1/messages",
  hasLogprobs: false,
  body: (asked, { model }) => ({
    model,
    max_tokens: asked.outputTokensMax,
    system: asked.instructions,
    messages: [
      {
        role: "user",
        content: [
          {
            type: "text",
            text: asked.evidence,
            ...(asked.isEvidenceShared ? { cache_control: { type: "ephemeral" } } : {}),
          },
          { type: "text", text: asked.question },
        ],
      },
      ...retried(asked),
    ],
    ...given("temperature", asked.isCold ? 0 : null),
    ...(asked.form.kind === "schema"
      ? { tools: [TOOL], tool_choice: { type: "tool", name: TOOL.name } }
      : {}),
  }),
  read(answer) {
    const { content, usage, stop_reason } = objectOf(answer)
    if (!Array.isArray(content) || !isObject(usage)) throw garbage("it has no content, or no usage")
    const parts = content.filter(isObject)
    const call = parts.find(({ type, name }) => type === "tool_use" && name === TOOL.name)
    const cached = count(usage["cache_read_input_tokens"])
    return {
      text: call
        ? JSON.stringify(byQuestion(listOf(objectOf(call["input"])["answers"])))
        : parts.map(({ text }) => (typeof text === "string" ? text : "")).join(""),
      top: [],
      isCut: stop_reason === "max_tokens",
      usage: {
        inputTokens: count(usage["input_tokens"]) + cached + count(usage["cache_creation_input_tokens"]),
        cachedInputTokens: cached,
        outputTokens: count(usage["output_tokens"]),
      },
    }
  },
}

/** As the schemas of other providers have them. One that is answered twice is not answered. */
function byQuestion(answers: readonly unknown[]): Json {
  const named = answers
    .filter(isObject)
    .flatMap(({ question, ...answer }) => (typeof question === "string" ? [[question, answer] as const] : []))
  return new Set(named.map(([name]) => name)).size === answers.length ? Object.fromEntries(named) : {}
}

const retried = ({ retryOf }: ChatQuestion): readonly Json[] =>
  retryOf === null
    ? []
    : [
        { role: "assistant", content: retryOf || "(nothing)" },
        { role: "user", content: AGAIN },
      ]
