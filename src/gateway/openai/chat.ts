/** Answers POST /v1/chat/completions: one stream of events inside, sent as chunks or gathered into one object. */
import { EventStream, type Handler, type StreamEvent } from "../../contract/endpoint.ts"
import type { ChatChunk, ChatCompletion, ChatRequest, ChatUsage } from "../../contract/openai/chat.ts"
import type { createChatCompletion } from "../../contract/openai/endpoints.ts"
import type { GenerationEvent, GenerationUsage, StopReason, TokenLogprob } from "../../engine/engine.ts"
import { chatWork, customInput, customNames } from "./chat-work.ts"
import type { MeteredCall } from "../metered-call.ts"
import type { StoredChats } from "./stored-chats.ts"
import { Generating, type InferenceDeps, runInference } from "./inference.ts"

type KeepChat = (completion: ChatCompletion) => Promise<void>

export function chatHandler(
  deps: InferenceDeps,
  stored?: Pick<StoredChats, "keep">,
): Handler<typeof createChatCompletion> {
  const start = { callSource: "chat_completions", wire: "chat_completions" } as const
  return async (asker) =>
    await runInference(deps, { ...start, asker }, async (call, body) => {
      const keep: KeepChat | undefined =
        body.store === true
          ? async (completion) => await stored?.keep(call.organizationId, body, completion)
          : undefined
      return await answerChat(deps, call, { body, keep })
    })
}

export async function answerChat(
  deps: InferenceDeps,
  call: MeteredCall,
  { body, keep }: { readonly body: ChatRequest; readonly keep?: KeepChat | undefined },
): Promise<EventStream | ChatCompletion> {
  const generating = await Generating.start(deps, call, {
    model: body.model,
    work: chatWork(body, call.organizationId),
    count: body.n ?? 1,
    isStreamed: body.stream === true,
  })
  const facts = {
    id: deps.ids.next("chatcmpl"),
    created: Math.floor(deps.clock.nowMs() / 1000),
    model: generating.model.sku,
  }
  generating.identify(facts.id)
  const writer = new ChatWriter(deps, generating, { ...facts, customNames: customNames(body) })
  return body.stream === true
    ? new EventStream(stream(writer, generating, { body, keep }), "[DONE]")
    : await gather(writer, generating, keep)
}

interface ChatFacts {
  readonly id: string
  readonly created: number
  readonly model: string
}

type Choice = ChatChunk["choices"][number]
type ChatLogprobs = NonNullable<Choice["logprobs"]>
type CallDelta = NonNullable<Choice["delta"]["tool_calls"]>[number]

interface AnswerCalls {
  count: number
  /** Of a custom tool's call, what was written of its arguments; null while none is open. */
  input: string | null
}

/** What was written so far of each answer, and the deltas that say so. */
class ChatWriter {
  readonly #deps: InferenceDeps
  readonly #facts: ChatFacts
  readonly #generating: Generating
  /** Of each answer, its calls so far. */
  readonly #calls = new Map<number, AnswerCalls>()
  readonly #customNames: ReadonlySet<string>
  readonly toolNames: string[] = []
  stopReason: StopReason = "stop"

  constructor(
    deps: InferenceDeps,
    generating: Generating,
    { customNames: names, ...facts }: ChatFacts & { readonly customNames: ReadonlySet<string> },
  ) {
    this.#deps = deps
    this.#customNames = names
    this.#generating = generating
    this.#facts = facts
  }

  /** Null for a piece of what is told when it is whole: the input of a custom tool. */
  delta(index: number, event: GenerationEvent): Choice | null {
    const calls = this.#callsOf(index)
    if (event.kind === "arguments" && calls.input !== null) {
      calls.input += event.text
      return null
    }
    const choice = { index, logprobs: null, finish_reason: null }
    const ended = this.#endCustom(calls)
    const closed = ended.length > 0 ? { tool_calls: ended } : {}
    switch (event.kind) {
      case "reasoning":
        return { ...choice, delta: { reasoning_content: event.text, ...closed } }
      case "text":
        return { ...choice, delta: { content: event.text, ...closed }, logprobs: toLogprobs(event.logprobs) }
      case "call":
        return { ...choice, delta: { tool_calls: [...ended, this.#call(calls, event.name)] } }
      case "arguments":
        return {
          ...choice,
          delta: { tool_calls: [{ index: calls.count - 1, function: { arguments: event.text } }] },
        }
      case "end":
        this.stopReason = event.reason
        return { ...choice, delta: closed, finish_reason: event.reason }
    }
  }

  chunk(choices: readonly Choice[], usage?: ChatUsage | null): ChatChunk {
    return {
      ...this.#facts,
      object: "chat.completion.chunk",
      system_fingerprint: null,
      service_tier: "default",
      choices: [...choices],
      ...(usage === undefined ? {} : { usage }),
    }
  }

  completion(choices: ChatCompletion["choices"]): ChatCompletion {
    return {
      ...this.#facts,
      object: "chat.completion",
      choices,
      usage: toUsage(this.#generating.usage()),
      system_fingerprint: null,
      service_tier: "default",
    }
  }

  async settle(): Promise<void> {
    const { stopReason, toolNames } = this
    await this.#generating.succeed({ stopReason, toolCalls: toolNames })
  }

  #callsOf(choice: number): AnswerCalls {
    const known = this.#calls.get(choice)
    if (known) return known
    const calls = { count: 0, input: null }
    this.#calls.set(choice, calls)
    return calls
  }

  #call(calls: AnswerCalls, name: string): CallDelta {
    this.toolNames.push(name)
    const begun = { index: calls.count++, id: this.#deps.ids.next("call") }
    if (!this.#customNames.has(name)) return { ...begun, type: "function", function: { name, arguments: "" } }
    calls.input = ""
    return { ...begun, type: "custom", custom: { name, input: "" } }
  }

  #endCustom(calls: AnswerCalls): CallDelta[] {
    const { input, count } = calls
    calls.input = null
    return input === null ? [] : [{ index: count - 1, custom: { input: customInput(input) } }]
  }
}

async function* stream(
  writer: ChatWriter,
  generating: Generating,
  { body, keep }: { readonly body: ChatRequest; readonly keep: KeepChat | undefined },
): AsyncGenerator<StreamEvent> {
  const answers = new Answers()
  const withUsage = body.stream_options?.include_usage === true
  const none = withUsage ? null : undefined
  const runs = generating.runs()
  let left = runs.length
  let last: Choice | null = null
  const events = merged(runs)
  try {
    let next = await events.next()
    generating.call.sequence.firstByte()
    for (let index = 0; index < runs.length; index++)
      yield send(
        writer.chunk(
          [{ index, delta: { role: "assistant", content: "" }, logprobs: null, finish_reason: null }],
          none,
        ),
      )
    for (; !next.done; next = await events.next()) {
      const { index, event } = next.value
      const choice = writer.delta(index, event)
      if (keep && choice) answers.add(choice)
      if (event.kind === "end" && --left === 0) last = choice
      else if (choice) yield send(writer.chunk([choice], none))
    }
    // The workers have ended, and the usage is on record, before the last answer is said to have ended.
    await writer.settle()
    await keep?.(writer.completion(answers.choices()))
    if (last) yield send(writer.chunk([last], none))
    if (withUsage) yield send(writer.chunk([], toUsage(generating.usage())))
  } finally {
    // The reader may have gone away between two events: the model stops, and then says what it used.
    await events.return(undefined)
  }
}

const send = (value: ChatChunk): StreamEvent => ({ name: null, value })

async function gather(
  writer: ChatWriter,
  generating: Generating,
  keep: KeepChat | undefined,
): Promise<ChatCompletion> {
  const answers = new Answers()
  for await (const { index, event } of merged(generating.runs())) {
    const choice = writer.delta(index, event)
    if (choice) answers.add(choice)
  }
  await writer.settle()
  const completion = writer.completion(answers.choices())
  await keep?.(completion)
  return completion
}

class Answers {
  readonly #answers = new Map<number, Answer>()

  add(choice: Choice): void {
    const answer = this.#answers.get(choice.index) ?? new Answer()
    this.#answers.set(choice.index, answer)
    answer.add(choice)
  }

  choices(): ChatCompletion["choices"] {
    return [...this.#answers].toSorted(([a], [b]) => a - b).map(([index, answer]) => answer.choice(index))
  }
}

/** The deltas of one answer put together. */
class Answer {
  #content: string | null = null
  #reasoning = ""
  #logprobs: ChatLogprobs["content"] = null
  #finishReason: StopReason = "stop"
  readonly #calls: NonNullable<ChatCompletion["choices"][number]["message"]["tool_calls"]> = []

  add({ delta, logprobs, finish_reason }: Choice): void {
    if (typeof delta.content === "string") this.#content = (this.#content ?? "") + delta.content
    this.#reasoning += delta.reasoning_content ?? ""
    if (logprobs?.content) (this.#logprobs ??= []).push(...logprobs.content)
    for (const { index, id = "", function: call, custom } of delta.tool_calls ?? []) {
      const known = this.#calls[index]
      if (known?.type === "function") known.function.arguments += call?.arguments ?? ""
      else if (known) known.custom.input += custom?.input ?? ""
      else if (custom)
        this.#calls[index] = { id, type: "custom", custom: { name: custom.name ?? "", input: custom.input } }
      else
        this.#calls[index] = {
          id,
          type: "function",
          function: { name: call?.name ?? "", arguments: call?.arguments ?? "" },
        }
    }
    if (finish_reason) this.#finishReason = finish_reason
  }

  choice(index: number): ChatCompletion["choices"][number] {
    const called = this.#calls.length > 0
    return {
      index,
      message: {
        role: "assistant",
        content: this.#content ?? (called ? null : ""),
        refusal: null,
        annotations: [],
        ...(this.#reasoning === "" ? {} : { reasoning_content: this.#reasoning }),
        ...(called ? { tool_calls: this.#calls } : {}),
      },
      logprobs: this.#logprobs ? { content: this.#logprobs, refusal: null } : null,
      finish_reason: this.#finishReason,
    }
  }
}

function toLogprobs(logprobs: readonly TokenLogprob[] | null): ChatLogprobs | null {
  if (!logprobs) return null
  return {
    content: logprobs.map(({ top, ...one }) => ({ ...withBytes(one), top_logprobs: top.map(withBytes) })),
    refusal: null,
  }
}

export const withBytes = ({ token, logprob }: { token: string; logprob: number }) => ({
  token,
  logprob,
  bytes: [...Buffer.from(token)],
})

function toUsage(used: GenerationUsage): ChatUsage {
  return {
    prompt_tokens: used.inputTokens,
    completion_tokens: used.outputTokens,
    total_tokens: used.inputTokens + used.outputTokens,
    prompt_tokens_details: { cached_tokens: used.cachedInputTokens, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: used.reasoningTokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

interface Numbered<Event> {
  readonly index: number
  readonly event: Event
}

async function* merged<Event>(streams: readonly AsyncIterable<Event>[]): AsyncGenerator<Numbered<Event>> {
  const [only, ...others] = streams
  // Most requests want one answer, and there is nothing to wait for beside it.
  if (only && others.length === 0) {
    for await (const event of only) yield { index: 0, event }
    return
  }
  const iterators = streams.map((stream) => stream[Symbol.asyncIterator]())
  type Step = { readonly index: number; readonly result: IteratorResult<Event> }
  const step = async (index: number): Promise<Step> => {
    const iterator = iterators[index]
    if (!iterator) throw new RangeError(`There is no stream ${index}`)
    return { index, result: await iterator.next() }
  }
  const pending = new Map(iterators.map((_, index) => [index, step(index)]))
  try {
    while (pending.size > 0) {
      const { index, result } = await Promise.race(pending.values())
      if (result.done) pending.delete(index)
      else {
        yield { index, event: result.value }
        pending.set(index, step(index))
      }
    }
  } finally {
    // Those still waiting are ended too; what they would have thrown has no reader any more.
    for (const one of pending.values()) one.catch(() => undefined)
    await Promise.allSettled(iterators.map(async (iterator) => await iterator.return?.()))
  }
}
