/** Reads a chat completion as it is written: server-sent events, one chunk each. */
import { ClientError, retryAfterMsOf } from "../../../src/contract/client.ts"
import { sequenceHeader } from "../../../src/contract/endpoint.ts"
import { csrfHeaders, watchedFetch } from "../connection.ts"
import { t } from "../i18n/translate.ts"

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant"
  readonly content: string
}

type ChatEvent =
  | { readonly kind: "sequence"; readonly id: string }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "end"; readonly reason: string }
  | { readonly kind: "usage"; readonly inputTokens: number; readonly outputTokens: number }

interface ChatOptions {
  readonly model: string
  readonly messages: readonly ChatMessage[]
  readonly temperature: number
  readonly tokensMax: number
  readonly orgId: string
  readonly signal: AbortSignal
}

export async function* streamChat(options: ChatOptions): AsyncGenerator<ChatEvent> {
  const { model, messages, temperature, tokensMax, orgId, signal } = options
  const response = await watchedFetch("/v1/chat/completions", {
    method: "POST",
    signal,
    headers: { "content-type": "application/json", "x-umpire-organization": orgId, ...csrfHeaders },
    body: JSON.stringify({
      model,
      messages,
      temperature,
      max_completion_tokens: tokensMax,
      stream: true,
      stream_options: { include_usage: true },
    }),
  })
  const id = response.headers.get(sequenceHeader)
  if (id) yield { kind: "sequence", id }
  if (!response.ok || !response.body) throw await refusal(response)
  for await (const line of lines(response.body)) {
    if (!line.startsWith("data:")) continue
    const text = line.slice("data:".length).trim()
    if (text === "[DONE]") return
    yield* eventsOf(JSON.parse(text) as Chunk)
  }
}

interface Chunk {
  readonly error?: { readonly message?: string; readonly code?: string }
  readonly choices?: readonly {
    readonly delta?: { readonly content?: string | null }
    readonly finish_reason?: string | null
  }[]
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null
}

export function* eventsOf({ error, choices = [], usage }: Chunk): Generator<ChatEvent> {
  if (error)
    throw new ClientError(500, error.code ?? null, error.message ?? t("The answer broke off."), { error })
  for (const { delta, finish_reason } of choices) {
    if (delta?.content) yield { kind: "text", text: delta.content }
    if (finish_reason) yield { kind: "end", reason: finish_reason }
  }
  if (usage) yield { kind: "usage", inputTokens: usage.prompt_tokens, outputTokens: usage.completion_tokens }
}

async function refusal(response: Response): Promise<ClientError> {
  const body = (await response.json().catch(() => null)) as {
    error?: { code?: string; message?: string }
  } | null
  const message = body?.error?.message ?? t("The server answered {status}", { status: response.status })
  return new ClientError(
    response.status,
    body?.error?.code ?? null,
    message,
    body,
    retryAfterMsOf(response.headers),
  )
}

/** A line may come in pieces; what is left at the end is a line too. */
export async function* lines(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  let rest = ""
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      const parts = (rest + value).split("\n")
      rest = parts.pop() ?? ""
      yield* parts
    }
    if (rest) yield rest
  } finally {
    await reader.cancel()
  }
}
