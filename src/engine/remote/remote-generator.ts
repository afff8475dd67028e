/** Generation at a worker that speaks OpenAI's chat completions. */
import { isObject } from "../../base/json.ts"
import {
  type ChatMessage,
  type GenerateCall,
  type GenerateEngine,
  type GenerateWork,
  type GenerationEvent,
  type GenerationUsage,
  type Media,
  type StopReason,
  type TokenLogprob,
  noGenerationUsage,
} from "../engine.ts"
import { Fault } from "../../contract/errors.ts"
import type { Dialect } from "./dialects.ts"
import { type HttpClient, type Json, garbage, given } from "./http-client.ts"

export interface RemoteModel {
  /** What the worker calls it. */
  readonly name: string
  readonly contextTokensMax: number
}

/** Around each message a template writes a few tokens of its own. */
const TOKENS_PER_MESSAGE = 16
const PROMPT_TOKENS_MIN = 64

export function remoteGenerator(client: HttpClient, dialect: Dialect, model: RemoteModel): GenerateEngine {
  return {
    generate: (work, call) => generate({ client, dialect, model, work }, call),
    close: async () => await client.close(),
  }
}

interface RemoteGeneration {
  readonly client: HttpClient
  readonly dialect: Dialect
  readonly model: RemoteModel
  readonly work: GenerateWork
}

async function* generate(
  { client, dialect, model, work }: RemoteGeneration,
  { admit, signal, onUsage }: GenerateCall,
): AsyncGenerator<GenerationEvent, void, undefined> {
  const outputTokensMax = await admit({
    // A token has at least one byte: nothing the worker counts can be more.
    inputTokensMost: Math.min(
      model.contextTokensMax,
      bytesOf(work) + work.messages.length * TOKENS_PER_MESSAGE + PROMPT_TOKENS_MIN,
    ),
    outputTokensMost: Math.min(work.outputTokensMax ?? model.contextTokensMax, model.contextTokensMax),
    isHandedOn: true,
    notEnforced: looseSchemas(work),
  })
  const startedMs = performance.now()
  const body = chatBody(work, dialect, { model: model.name, outputTokensMax })
  const bytes = await client.stream("/v1/chat/completions", body, signal)
  const reader = new ChunkReader(dialect)
  try {
    for await (const data of readEvents(bytes)) {
      // Read to its end, so that the connection can be used again.
      if (data === "[DONE]") continue
      const events = reader.read(data)
      onUsage({ ...reader.usage, executionMs: Math.round(performance.now() - startedMs) })
      yield* events
    }
    if (reader.stopReason === null)
      throw new Fault("inference_failed", "Cannot finish the request: the worker broke off its answer")
    onUsage({ ...reader.usage, executionMs: Math.round(performance.now() - startedMs) })
    yield { kind: "end", reason: reader.stopReason }
  } catch (error) {
    if (error instanceof RangeError) throw garbage("an event is too large", error)
    throw error
  }
}

/** Workers keep to schemas that are not strict as well as they can. */
function looseSchemas({ format, tools }: GenerateWork): string[] {
  return [
    ...(format.kind === "json_schema" && !format.strict ? ["#"] : []),
    ...tools.filter(({ strict, parameters }) => !strict && parameters !== null).map(({ name }) => `${name}#`),
  ]
}

/** Reads chunks into events, and counts what the worker does not count. */
class ChunkReader {
  readonly #reasoningFields: readonly string[]
  #open = -1
  #pieces = 0
  #reported: GenerationUsage | null = null
  stopReason: StopReason | null = null

  constructor({ reasoningFields }: Dialect) {
    this.#reasoningFields = reasoningFields
  }

  /** What the worker reported; before that, at least a token for each piece. */
  get usage(): GenerationUsage {
    return this.#reported ?? { ...noGenerationUsage, outputTokens: this.#pieces }
  }

  read(data: string): GenerationEvent[] {
    const chunk = parsed(data)
    if (chunk["error"] !== undefined && chunk["error"] !== null)
      throw new Fault("inference_failed", "Cannot finish the request: the worker failed while it answered", {
        cause: chunk["error"],
      })
    const usage = chunk["usage"]
    if (isObject(usage)) this.#reported = toUsage(usage)
    const { choices } = chunk
    const [choice] = listOf(choices)
    if (!isObject(choice)) return []
    if (typeof choice["finish_reason"] === "string") this.stopReason = toReason(choice["finish_reason"])
    return isObject(choice["delta"]) ? this.#delta(choice["delta"], choice["logprobs"]) : []
  }

  #delta(delta: Json, logprobs: unknown): GenerationEvent[] {
    const events: GenerationEvent[] = []
    const reasoning = this.#reasoningFields
      .map((field) => delta[field])
      .find((one) => typeof one === "string" && one !== "")
    if (typeof reasoning === "string") events.push({ kind: "reasoning", text: reasoning })
    const { content, tool_calls: calls } = delta
    if (typeof content === "string" && content !== "")
      events.push({ kind: "text", text: content, logprobs: toLogprobs(logprobs) })
    for (const call of listOf(calls)) events.push(...this.#call(call))
    this.#pieces += events.length > 0 ? 1 : 0
    return events
  }

  #call(call: unknown): GenerationEvent[] {
    if (!isObject(call) || !isObject(call["function"])) throw garbage("a tool call has no function")
    const { name, arguments: given } = call["function"]
    const index = typeof call["index"] === "number" ? call["index"] : this.#open + 1
    const events: GenerationEvent[] = []
    if (index !== this.#open) {
      if (typeof name !== "string" || name === "") throw garbage("a tool call has no name")
      this.#open = index
      events.push({ kind: "call", name })
    }
    const text =
      typeof given === "string" ? given : given === undefined || given === null ? "" : JSON.stringify(given)
    if (text !== "") events.push({ kind: "arguments", text })
    return events
  }
}

function parsed(data: string): Json {
  try {
    const value: unknown = JSON.parse(data)
    if (isObject(value)) return value
  } catch (cause) {
    throw garbage("an event is not JSON", cause)
  }
  throw garbage("an event is not an object")
}

const count = (value: unknown): number =>
  typeof value === "number" && value >= 0 && Number.isSafeInteger(Math.round(value)) ? Math.round(value) : 0

function toUsage(usage: Json): GenerationUsage {
  const prompt = isObject(usage["prompt_tokens_details"]) ? usage["prompt_tokens_details"] : {}
  const completion = isObject(usage["completion_tokens_details"]) ? usage["completion_tokens_details"] : {}
  return {
    inputTokens: count(usage["prompt_tokens"]),
    cachedInputTokens: Math.min(count(prompt["cached_tokens"]), count(usage["prompt_tokens"])),
    outputTokens: count(usage["completion_tokens"]),
    reasoningTokens: count(completion["reasoning_tokens"]),
    executionMs: 0,
  }
}

function toReason(reason: string): StopReason {
  if (reason === "length" || reason === "content_filter" || reason === "tool_calls") return reason
  return reason === "function_call" ? "tool_calls" : "stop"
}

function toLogprobs(logprobs: unknown): readonly TokenLogprob[] | null {
  const content = isObject(logprobs) ? logprobs["content"] : null
  if (!Array.isArray(content)) return null
  return content.filter(isObject).map((one) => ({
    ...pair(one),
    top: listOf(one["top_logprobs"]).filter(isObject).map(pair),
  }))
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

const pair = (one: Json): { token: string; logprob: number } => ({
  token: typeof one["token"] === "string" ? one["token"] : "",
  logprob: typeof one["logprob"] === "number" ? one["logprob"] : -9999,
})

/** More than models read an image or a page as. */
const MEDIA_TOKENS = 8192

function bytesOf({ messages, tools, format }: GenerateWork): number {
  const texts = messages.map(({ media: _media, ...message }) => message)
  const media = messages.flatMap((message) => message.media ?? [])
  const files = media.filter(({ kind }) => kind === "file").map(({ part }) => part)
  return Buffer.byteLength(JSON.stringify([texts, files, tools, format])) + media.length * MEDIA_TOKENS
}

function chatBody(
  work: GenerateWork,
  dialect: Dialect,
  { model, outputTokensMax }: { readonly model: string; readonly outputTokensMax: number },
): Json {
  const { sampling } = work
  const quiet = work.effort === "none" || work.effort === "minimal"
  return {
    model,
    messages: toWire(work.messages),
    stream: true,
    stream_options: { include_usage: true },
    // Without a limit of the request's own the worker knows best what is left of its context.
    ...(work.outputTokensMax === null ? {} : { [dialect.lengthField]: outputTokensMax }),
    ...given("temperature", sampling.temperature),
    ...given("top_p", sampling.topP),
    ...given("seed", sampling.seed),
    ...(sampling.frequencyPenalty === 0 ? {} : { frequency_penalty: sampling.frequencyPenalty }),
    ...(sampling.presencePenalty === 0 ? {} : { presence_penalty: sampling.presencePenalty }),
    ...(Object.keys(sampling.logitBias).length === 0 ? {} : { logit_bias: sampling.logitBias }),
    ...(work.stop.length === 0 ? {} : { stop: work.stop }),
    ...(work.topLogprobs === null ? {} : { logprobs: true, top_logprobs: work.topLogprobs }),
    ...toolFields(work, dialect),
    ...formatFields(work, dialect),
    ...(quiet ? dialect.noThinking : given("reasoning_effort", work.effort)),
  }
}

/** The results of tools have text only in this protocol: what they show follows them as a message of the user. */
function toWire(messages: readonly ChatMessage[]): Json[] {
  const wire: Json[] = []
  let shown: Media[] = []
  const close = (): void => {
    if (shown.length > 0) wire.push({ role: "user", content: shown.map(({ part }) => part) })
    shown = []
  }
  for (const message of messages) {
    if (message.role === "tool") shown.push(...(message.media ?? []))
    else close()
    wire.push(messageOf(message))
  }
  close()
  return wire
}

/** Text and media in turn. */
function partsOf(text: string, media: readonly Media[]): Json[] {
  const starts = [0, ...media.map(({ at }) => Math.min(at, text.length))]
  const pieces = starts.map((start, index) => text.slice(start, starts[index + 1]))
  return pieces.flatMap((piece, index) => [
    ...(piece === "" ? [] : [{ type: "text", text: piece }]),
    ...(media[index] ? [media[index].part] : []),
  ])
}

function messageOf(message: ChatMessage): Json {
  const { content, media = [] } = message
  return {
    role: message.role,
    content: media.length === 0 || message.role === "tool" ? content : partsOf(content, media),
    ...(message.reasoning === undefined ? {} : { reasoning_content: message.reasoning }),
    ...(message.toolCallId === undefined ? {} : { tool_call_id: message.toolCallId }),
    ...(message.toolCalls === undefined
      ? {}
      : {
          tool_calls: message.toolCalls.map((call) => ({
            id: call.id,
            type: "function",
            function: { name: call.name, arguments: call.arguments },
          })),
        }),
  }
}

function toolFields({ tools, toolChoice, parallelToolCalls }: GenerateWork, { namedTool }: Dialect): Json {
  if (tools.length === 0) return {}
  const isAlone = namedTool === "alone" && typeof toolChoice !== "string"
  const offered = isAlone ? tools.filter(({ name }) => name === toolChoice.name) : tools
  const named = isAlone ? "required" : { type: "function", function: toolChoice }
  return {
    tools: offered.map(({ name, description, parameters, strict }) => ({
      type: "function",
      function: {
        name,
        ...given("description", description),
        ...given("parameters", parameters),
        ...(strict ? { strict } : {}),
      },
    })),
    // What a worker does unasked is not asked of it.
    ...(toolChoice === "auto" ? {} : { tool_choice: typeof toolChoice === "string" ? toolChoice : named }),
    ...(parallelToolCalls ? {} : { parallel_tool_calls: false }),
  }
}

function formatFields({ format }: GenerateWork, { jsonObject }: Dialect): Json {
  switch (format.kind) {
    case "text":
      return {}
    case "json_object":
      return { response_format: jsonObject }
    case "json_schema": {
      const { name, schema, strict, description } = format
      const named = { name, ...(description === undefined ? {} : { description }), schema }
      return { response_format: { type: "json_schema", json_schema: strict ? { ...named, strict } : named } }
    }
  }
}

/** A line longer than this is not an event of any server that is meant. */
const LINE_CHARACTERS_MAX = 4 * 1024 * 1024

/** The data of each event, in order; comments and other fields are passed over. */
export async function* readEvents(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let text = ""
  let lines: string[] = []
  for await (const chunk of bytes) {
    text += decoder.decode(chunk, { stream: true })
    // A carriage return at the end may be the first half of a line's end.
    const whole = text.endsWith("\r") ? text.slice(0, -1) : text
    const parts = whole.split(/\r\n|\n|\r/)
    text = (parts.pop() ?? "") + text.slice(whole.length)
    if (text.length > LINE_CHARACTERS_MAX) throw new RangeError("An event is longer than any that is meant")
    for (const line of parts) {
      if (line === "") {
        if (lines.length > 0) yield lines.join("\n")
        lines = []
      } else if (line.startsWith("data:")) lines.push(line.slice(line.charAt(5) === " " ? 6 : 5))
    }
  }
  if (text.startsWith("data:")) lines.push(text.slice(text.charAt(5) === " " ? 6 : 5).trimEnd())
  if (lines.length > 0) yield lines.join("\n")
}
