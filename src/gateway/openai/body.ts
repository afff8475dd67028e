/** Reads the bodies of the OpenAI-compatible endpoints: bounds first, then JSON, then the schema; large ones in a thread. */
import type { z } from "zod"
import { checkJsonBounds, JsonError, standardBounds, objectOf } from "../../base/json.ts"
import { ownBuffers } from "../../base/own-buffer.ts"
import { task, threadBytesMin, threads } from "../../base/peer/threads.ts"
import { check } from "../../contract/check.ts"
import { Fault, type FaultCode } from "../../contract/errors.ts"
import { CountTokensRequest, MessagesRequest } from "../../contract/anthropic/messages.ts"
import { ChatRequest } from "../../contract/openai/chat.ts"
import { CompletionRequest } from "../../contract/openai/completions.ts"
import { EmbeddingRequest } from "../../contract/openai/embeddings.ts"
import { textCharactersMax } from "../../contract/openai/limits.ts"
import { ModerationRequest } from "../../contract/openai/moderations.ts"
import { withoutIgnored } from "../../contract/openai/parameters.ts"
import { CompactRequest, InputTokensRequest } from "../../contract/openai/response-prompts.ts"
import { RerankRequest } from "../../contract/openai/rerank.ts"
import { ResponseCreateMessage, ResponseRequest } from "../../contract/openai/responses.ts"
import type { Sequence } from "../meter.ts"

const schemas = {
  chat_completions: ChatRequest,
  completions: CompletionRequest,
  responses: ResponseRequest,
  responses_ws: ResponseCreateMessage,
  embeddings: EmbeddingRequest,
  input_tokens: InputTokensRequest,
  compact: CompactRequest,
  messages: MessagesRequest,
  message_tokens: CountTokensRequest,
  rerank: RerankRequest,
  moderations: ModerationRequest,
} as const
export type Wire = keyof typeof schemas
export type RequestOf<W extends Wire> = z.output<(typeof schemas)[W]>

interface BodyJob {
  readonly wire: Wire
  readonly bytes: Uint8Array
}

/** The model is known as soon as the JSON is read, also of a request that is refused. */
interface ReadBody {
  readonly model: string | null
  readonly outcome:
    | { readonly request: unknown }
    | { readonly code: FaultCode; readonly message: string; readonly param?: string | undefined }
}

/** Of large bytes nothing is left afterwards. */
export type BodyReader = <W extends Wire>(
  wire: W,
  bytes: Uint8Array,
  asker: BodyAsker,
) => Promise<RequestOf<W>>

interface BodyAsker {
  readonly organizationId: string
  readonly signal: AbortSignal
  /** Told the model that the request names. */
  readonly sequence: Pick<Sequence, "name">
}

export function createBodyReader(): BodyReader {
  return async <W extends Wire>(wire: W, bytes: Uint8Array, asker: BodyAsker) => {
    const job = { wire, bytes }
    const { model, outcome } =
      bytes.byteLength < threadBytesMin
        ? readBody(job)
        : await threads.run(asker.organizationId, readBodyTask, job, asker.signal)
    if (model !== null) asker.sequence.name(model)
    if ("request" in outcome) return outcome.request as RequestOf<W> // The output of this wire's schema.
    const { code, message, param } = outcome
    throw new Fault(code, message, param === undefined ? {} : { param })
  }
}

/** Embeddings take lists of tokens. */
const tokenBounds = { ...standardBounds, valuesMax: Infinity }

const readBodyTask = task(import.meta.url, readBody, ({ bytes }) => ownBuffers(bytes))

export function readBody({ wire, bytes }: BodyJob): ReadBody {
  let model: string | null = null
  try {
    checkJsonBounds(bytes, wire === "embeddings" ? tokenBounds : standardBounds)
    const value = parseJson(bytes)
    model = modelOf(value)
    if (wire === "responses_ws") checkMessageType(value)
    const request = checkParameters(schemas[wire], value, bytes.byteLength)
    if (bytes.byteLength > textCharactersMax) checkTextLength(request)
    return { model, outcome: { request: withoutIgnored(schemas[wire], request) } }
  } catch (error) {
    if (error instanceof JsonError)
      return {
        model,
        outcome: { code: "invalid_request", message: `Cannot read the request: ${error.message}` },
      }
    if (!(error instanceof Fault)) throw error
    const { code, message, param } = error
    return { model, outcome: { code, message, param } }
  }
}

/** Where images and files stand, by their data or their address. */
const fileKeys: ReadonlySet<string> = new Set(["data", "file_data", "image_url", "url"])

/** Here in the thread: a long text takes tens of milliseconds of the event loop only to be handed over, and no model reads it. */
function checkTextLength(request: unknown): void {
  let characters = 0
  const count = (value: unknown): void => {
    if (typeof value === "string") characters += value.length
    if (typeof value !== "object" || value === null) return
    for (const [key, inner] of Object.entries(value))
      if (typeof inner !== "string" || !fileKeys.has(key)) count(inner)
  }
  count(request)
  if (characters > textCharactersMax)
    throw new Fault(
      "context_length_exceeded",
      `Cannot read the request: it has ${characters} characters of text, and at most ${textCharactersMax} are read`,
    )
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch {
    // The parser's own words quote the body, which may hold a secret.
    throw new Fault("invalid_json", "Cannot read the request: its body is not JSON")
  }
}

function modelOf(value: unknown): string | null {
  const { model } = objectOf(value)
  return typeof model === "string" ? model : null
}

function checkMessageType(message: unknown): void {
  const { type } = objectOf(message)
  if (type !== "response.create")
    throw new Fault(
      "invalid_request",
      "Cannot use the message: its type is not response.create, the only one there is",
      { param: "type" },
    )
}

/** OpenAI's clients read `code` and `param`: what is unknown, unsupported and merely wrong have codes of their own. */
function checkParameters(schema: z.ZodObject, value: unknown, bytes: number): Record<string, unknown> {
  const parsed = check(schema, value, bytes)
  if (parsed.success) return parsed.data
  const issue = deepest(parsed.error.issues)
  const [key] = issue?.code === "unrecognized_keys" ? issue.keys : []
  const param = issue ? [...issue.path, ...(key === undefined ? [] : [key])].join(".") : ""
  const found = key === undefined ? issue?.message : "no such field"
  throw new Fault(
    codeOf(issue),
    `Cannot use ${param || "the request"}: ${found ?? "it does not match the schema"}`,
    param === "" ? {} : { param },
  )
}

/** Of the ways in which a union can fail, the one that got furthest says best what is wrong. */
function deepest(issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue | undefined {
  const [issue] = issues
  if (issue?.code !== "invalid_union" || issue.errors.length === 0 || issue.message !== unionMessage)
    return issue
  const candidates = issue.errors.map((option) => deepest(option)).filter((one) => one !== undefined)
  const best = candidates.toSorted((a, b) => b.path.length - a.path.length)[0]
  return best ? { ...best, path: [...issue.path, ...best.path] } : issue
}

const unionMessage = "Invalid input"

function codeOf(issue: z.core.$ZodIssue | undefined): FaultCode {
  if (issue?.code === "unrecognized_keys") return "unknown_parameter"
  // Only `refusedAs` sets it.
  if (issue?.code === "custom") return (issue.params?.["fault"] as FaultCode | undefined) ?? "invalid_request"
  return "invalid_request"
}
