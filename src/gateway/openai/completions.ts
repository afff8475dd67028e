/** Answers POST /v1/completions: a prompt is a conversation of one message, and its answer is told in the older form. */
import { EventStream, type Handler, type StreamEvent } from "../../contract/endpoint.ts"
import type { ChatChunk, ChatCompletion, ChatRequest } from "../../contract/openai/chat.ts"
import type { Completion, CompletionRequest } from "../../contract/openai/completions.ts"
import type { createCompletion } from "../../contract/openai/endpoints.ts"
import { answerChat } from "./chat.ts"
import { type InferenceDeps, runInference } from "./inference.ts"

export function completionHandler(deps: InferenceDeps): Handler<typeof createCompletion> {
  return async (asker) =>
    await runInference(
      deps,
      { callSource: "completions", wire: "completions", asker },
      async (call, body) => {
        const answer = await answerChat(deps, call, { body: toChat(body) })
        return answer instanceof EventStream
          ? new EventStream(inOlderForm(answer.events), answer.ending)
          : toCompletion(
              answer,
              answer.choices.map((choice) => ({ ...choice, delta: choice.message })),
            )
      },
    )
}

function toChat({ prompt, logprobs, metadata: _metadata, ...asked }: CompletionRequest): ChatRequest {
  const { best_of: _best, echo: _echo, suffix: _suffix, ...chat } = asked
  const [content = ""] = typeof prompt === "string" ? [prompt] : prompt
  const wanted = typeof logprobs === "number" ? { logprobs: true, top_logprobs: logprobs } : {}
  // What chat refuses is not there.
  return { ...chat, ...wanted, messages: [{ role: "user", content }] } as ChatRequest
}

async function* inOlderForm(events: AsyncIterable<StreamEvent>): AsyncGenerator<StreamEvent> {
  const lengths = new Map<number, number>()
  for await (const { name, value } of events) {
    // Chat sends nothing else.
    const chunk = value as ChatChunk
    // The first says the role only, and thoughts have no place.
    const choices = chunk.choices.filter(({ delta, finish_reason }) => delta.content || finish_reason)
    if (choices.length > 0 || chunk.choices.length === 0)
      yield { name, value: toCompletion(chunk, choices, lengths) }
  }
}

interface AnyChoice {
  readonly index: number
  readonly delta: { readonly content?: string | null | undefined }
  readonly logprobs: ChatCompletion["choices"][number]["logprobs"]
  readonly finish_reason: ChatChunk["choices"][number]["finish_reason"]
}

/** `lengths` are how many characters of each answer were told before. */
function toCompletion(
  { id, created, model, usage, system_fingerprint }: ChatChunk | ChatCompletion,
  choices: readonly AnyChoice[],
  lengths = new Map<number, number>(),
): Completion {
  return {
    id,
    object: "text_completion",
    created,
    model,
    choices: choices.map(({ index, delta, logprobs, finish_reason: reason }) => {
      const text = delta.content ?? ""
      const before = lengths.get(index) ?? 0
      lengths.set(index, before + text.length)
      return {
        index,
        text,
        logprobs: toLogprobs(logprobs, before),
        finish_reason: reason === "tool_calls" ? "stop" : reason,
      }
    }),
    ...(usage === undefined ? {} : { usage }),
    system_fingerprint,
  }
}

function toLogprobs(given: AnyChoice["logprobs"], before: number): Completion["choices"][number]["logprobs"] {
  if (!given?.content) return null
  let at = before
  return {
    tokens: given.content.map(({ token }) => token),
    token_logprobs: given.content.map(({ logprob }) => logprob),
    top_logprobs: given.content.map(({ top_logprobs }) =>
      Object.fromEntries(top_logprobs.map(({ token, logprob }) => [token, logprob])),
    ),
    text_offset: given.content.map(({ token }) => (at += token.length) - token.length),
  }
}
