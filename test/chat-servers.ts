/**
 * Servers that answer as OpenAI, Anthropic, Ollama and vLLM do, over the wire: the shapes, limits and refusals are those of their
 * documentation, the judgement is a rule. An option that the text names is right; the first label is preferred, as models do.
 */
import { type IncomingMessage, createServer } from "node:http"
import type { AddressInfo } from "node:net"

type Json = Readonly<Record<string, unknown>>

export interface ChatServer {
  readonly url: string
  /** Bodies of the chats that were answered or refused, in order. */
  readonly chats: { readonly body: Json; readonly status: number }[]
  readonly key: string
  /** Answers in plain text that are not in the form, before those that are. */
  malformed: number
  /** The status that refuses a chat, whatever it asks; null: none does. */
  refuses: (body: string) => number | null
  /** Headers of what is refused. */
  refusalHeaders: Readonly<Record<string, string>>
  close(): Promise<void>
}

export type ChatServerKind =
  | "openai"
  | "reasoning"
  | "strict-reasoning"
  | "azure"
  | "anthropic"
  | "ollama"
  | "old-ollama"
  | "vllm"
  | "plain"
  | "five"

interface Asked {
  readonly text: string
  readonly lines: Json
}

/** Natural logarithm of how much the first place is preferred. */
const PLACE_BIAS = 1.2
const RIGHT = 3

class Refused extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

const objectOf = (value: unknown): Json =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {}

/** Both lines of the user's message, which must be JSON; nothing else may stand there. */
function askedIn(parts: string): Asked {
  const [first = "", second = "", ...more] = parts.split("\n")
  if (more.length > 0) throw new Refused(400, "the user's message has more than two lines")
  const { text } = JSON.parse(first) as { text: string }
  return { text, lines: JSON.parse(second) as Json }
}

/** Log-odds of each option of a question, by its place. */
function judge(text: string, question: string, options: readonly string[]): number[] {
  const named = (word: string): boolean => text.toLowerCase().includes(word.toLowerCase())
  const subject = /^Is the word (\w+) there\?$/.exec(question)?.[1]
  return options.map((option, place) => {
    const word = option.split(" - ")[0] ?? ""
    const isRight = subject === undefined ? named(word) : (word === "yes") === named(subject)
    return (isRight ? RIGHT : 0) + (place === 0 ? PLACE_BIAS : 0)
  })
}

const tokensOf = (text: string): number => Math.ceil(text.length / 4)

export async function startChatServer(kind: ChatServerKind): Promise<ChatServer> {
  const key = `key-of-${kind}`
  const state: Pick<ChatServer, "chats" | "malformed" | "refuses" | "refusalHeaders"> = {
    chats: [],
    malformed: 0,
    refuses: () => null,
    refusalHeaders: {},
  }
  const server = createServer((request, response) => {
    void answerRequest(request)
      .catch((error: unknown) => {
        const status = error instanceof Refused ? error.status : 500
        const message = error instanceof Error ? error.message : "broken"
        return { status, answer: { error: { message, type: "invalid_request_error" } } }
      })
      .then(({ status, answer }) => {
        const headers = status === 200 ? {} : state.refusalHeaders
        response
          .writeHead(status, { "content-type": "application/json", ...headers })
          .end(JSON.stringify(answer))
      })
  })
  const answerRequest = async (request: IncomingMessage): Promise<{ status: number; answer: unknown }> => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    checkKey(kind, key, request)
    if (request.url?.endsWith("/v1/models")) return { status: 200, answer: { data: [] } }
    const path = kind === "anthropic" ? "/v1/messages" : "/v1/chat/completions"
    if (!request.url?.endsWith(path)) throw new Refused(404, "Unknown request URL")
    const text = Buffer.concat(chunks).toString()
    const body = JSON.parse(text) as Json
    try {
      const refused = state.refuses(text)
      if (refused !== null) throw new Refused(refused, "this is blocked here")
      const answer = kind === "anthropic" ? message(body) : completion(kind, body, state)
      state.chats.push({ body, status: 200 })
      return { status: 200, answer }
    } catch (error) {
      state.chats.push({ body, status: error instanceof Refused ? error.status : 500 })
      throw error
    }
  }
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return Object.assign(state, {
    url: `http://127.0.0.1:${port}${kind === "azure" ? "/openai" : ""}/v1`,
    key,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  })
}

function checkKey(kind: ChatServerKind, key: string, { headers }: IncomingMessage): void {
  if (kind === "ollama" || kind === "old-ollama") return
  const given =
    kind === "anthropic"
      ? headers["x-api-key"]
      : kind === "azure"
        ? headers["api-key"]
        : headers.authorization?.replace("Bearer ", "")
  if (given !== key) throw new Refused(401, `Incorrect API key provided: ${String(given)}`)
  if (kind === "anthropic" && headers["anthropic-version"] !== "2023-06-01")
    throw new Refused(400, "anthropic-version: header is required")
}

function completion(kind: ChatServerKind, body: Json, state: { malformed: number }): Json {
  const messages = body["messages"] as { role: string; content: string }[]
  const [system, user] = messages
  const asked = askedIn(user?.content ?? "")
  const limit = Number(body["max_completion_tokens"] ?? body["max_tokens"])
  const isReasoning = kind === "reasoning" || kind === "strict-reasoning"
  const isHosted = kind === "openai" || kind === "azure" || isReasoning
  if (isHosted && body["max_tokens"] !== undefined)
    throw new Refused(
      400,
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    )
  if (isReasoning && body["temperature"] !== undefined)
    throw new Refused(400, "Unsupported value: 'temperature' does not support 0 with this model.")
  const top = body["logprobs"] === true ? Number(body["top_logprobs"]) : null
  if (top !== null && isReasoning)
    throw new Refused(403, "You are not allowed to request logprobs from this model")
  if (top !== null && kind === "plain") throw new Refused(400, "logprobs is not supported")
  if (top !== null && top > (kind === "five" ? 5 : 20))
    throw new Refused(400, `Requested ${top} logprobs, which is greater than max allowed`)
  const format = objectOf(body["response_format"])
  if (kind === "plain" && format["type"] !== undefined)
    throw new Refused(400, "response_format is not supported")
  const usage = (written: number, thought = 0): Json => ({
    prompt_tokens: tokensOf(`${system?.content}${user?.content}`),
    completion_tokens: written + thought,
    total_tokens: 0,
    prompt_tokens_details: { cached_tokens: 8 },
    completion_tokens_details: { reasoning_tokens: thought },
  })
  const reply = (content: string, more: Json = {}, used = usage(tokensOf(content))): Json => ({
    id: "chatcmpl-1",
    object: "chat.completion",
    model: body["model"],
    choices: [
      { index: 0, message: { role: "assistant", content, refusal: null }, finish_reason: "stop", ...more },
    ],
    usage: used,
  })
  const THOUGHT = 200
  if (kind === "strict-reasoning" && limit < THOUGHT + 20)
    throw new Refused(
      400,
      "Could not finish the message because max_tokens or model output limit was reached. Please try again with higher max_tokens.",
    )
  if (isReasoning && limit < THOUGHT + 20) return reply("", { finish_reason: "length" }, usage(0, limit))
  const thought = isReasoning ? THOUGHT : 0
  if (asked.lines["options"]) {
    const content = labelled(asked, kind === "old-ollama" ? null : top)
    return reply(content.label, { logprobs: content.logprobs }, usage(1))
  }
  if (format["type"] === "json_schema") {
    const text = JSON.stringify(stated(asked))
    return reply(text, {}, usage(tokensOf(text), thought))
  }
  if (state.malformed > 0) {
    state.malformed--
    return reply("I think the first one is right.")
  }
  const lines = Object.entries(stated(asked)).map(
    ([name, { option, confidence }]) => `${name}: ${option} ${confidence}`,
  )
  return reply(lines.join("\n"))
}

/** The label with the alternatives of the token, among them some that are no labels. */
function labelled({ text, lines }: Asked, top: number | null): { label: string; logprobs: Json | null } {
  const options = Object.entries(objectOf(lines["options"])) as [string, string][]
  const odds = judge(
    text,
    String(lines["question"]),
    options.map(([, option]) => option),
  )
  const others = ["The", " I", "\n", '"', "Option", "Answer", "**", "1", "It", "Based"].map(
    (token) => [token, -4] as const,
  )
  const all = [...options.map(([label], at) => [label, odds[at] ?? 0] as const), ...others]
  const sum = Math.log(all.reduce((total, [, odd]) => total + Math.exp(odd), 0))
  const sorted = all
    .map(([token, odd]) => ({ token, logprob: odd - sum, bytes: null }))
    .toSorted((a, b) => b.logprob - a.logprob)
  const best = sorted[0] ?? { token: "", logprob: 0, bytes: null }
  const logprobs = top === null ? null : { content: [{ ...best, top_logprobs: sorted.slice(0, top) }] }
  return { label: best.token, logprobs }
}

function stated({ text, lines }: Asked): Record<string, { option: string; confidence: number }> {
  const questions = Object.entries(objectOf(lines["questions"])) as [
    string,
    { question: string; options: Record<string, string> },
  ][]
  return Object.fromEntries(
    questions.map(([name, { question, options }]) => {
      const odds = judge(text, question, Object.values(options))
      const best = odds.indexOf(Math.max(...odds))
      return [name, { option: Object.keys(options)[best] ?? "", confidence: 90 }]
    }),
  )
}

const listed = (asked: Asked): Json[] =>
  Object.entries(stated(asked)).map(([question, answer]) => ({ question, ...answer }))

function message(body: Json): Json {
  const [user] = body["messages"] as { content: { text: string }[] }[]
  const parts = user?.content ?? []
  const asked = askedIn(parts.map(({ text }) => text).join("\n"))
  if (typeof body["max_tokens"] !== "number") throw new Refused(400, "max_tokens: Field required")
  const usage = {
    input_tokens: 30,
    cache_creation_input_tokens: 5,
    cache_read_input_tokens: 7,
    output_tokens: 40,
  }
  const isTool = objectOf(body["tool_choice"])["name"] === "answers"
  const content = isTool
    ? [{ type: "tool_use", id: "toolu_1", name: "answers", input: { answers: listed(asked) } }]
    : [{ type: "text", text: "I would rather not." }]
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    content,
    stop_reason: isTool ? "tool_use" : "end_turn",
    usage,
  }
}
