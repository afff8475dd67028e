/** The one catalog of errors: every stable code with its status and what it means, and the Fault that carries it. */

import type { Surface } from "./endpoint.ts"

/** How an error body is shaped on the OpenAI-compatible endpoints, whose clients read `type`. */
type FaultType =
  | "authentication_error"
  | "permission_error"
  | "billing_error"
  | "rate_limit_error"
  | "invalid_request_error"
  | "server_error"

interface FaultEntry {
  readonly status: number
  readonly type: FaultType
  /** For the documentation: when this code is answered. */
  readonly when: string
}

const entry = (status: number, type: FaultType, when: string): FaultEntry => ({ status, type, when })
const invalid = (when: string): FaultEntry => entry(422, "invalid_request_error", when)

export const faultCatalog = {
  missing_credentials: entry(
    401,
    "authentication_error",
    "The Authorization header is absent or not a bearer value.",
  ),
  invalid_credentials: entry(
    401,
    "authentication_error",
    "The bearer value is unknown, expired, revoked or malformed.",
  ),
  second_factor_required: entry(
    401,
    "authentication_error",
    "The password or link is right, and two-factor sign-in is on: send the code too.",
  ),

  billing_required: entry(
    402,
    "billing_error",
    "The billing account cannot pay for inference in its present state.",
  ),
  insufficient_credits: entry(402, "billing_error", "The prepaid balance does not cover this request."),
  spend_limit_exceeded: entry(
    402,
    "billing_error",
    "The usage spend cutoff of the billing account is reached.",
  ),
  key_budget_exceeded: entry(402, "billing_error", "A budget of the API key does not cover this request."),
  tag_budget_exceeded: entry(
    402,
    "billing_error",
    "A budget of one of its tags does not cover this request.",
  ),
  payment_method_required: entry(402, "billing_error", "A postpaid account has no default payment method."),

  permission_denied: entry(
    403,
    "permission_error",
    "The principal lacks the permission or role that this operation needs.",
  ),
  principal_not_accepted: entry(
    403,
    "permission_error",
    "This kind of principal may not call this operation.",
  ),
  single_sign_on_required: entry(
    403,
    "permission_error",
    "The organization requires single sign-on, and this session began without it.",
  ),
  network_denied: entry(403, "permission_error", "The API key may not be used from this network address."),
  model_denied: entry(403, "permission_error", "The API key may not use this model."),
  region_denied: entry(
    403,
    "permission_error",
    "No region that the organization may use can serve this request.",
  ),
  model_access_required: entry(
    403,
    "permission_error",
    "The organization has not been granted access to this model.",
  ),

  not_found: entry(
    404,
    "invalid_request_error",
    "The resource does not exist or is not visible to the principal.",
  ),
  method_not_allowed: entry(
    405,
    "invalid_request_error",
    "The address exists, but not for this method; the allow header names those it has.",
  ),
  csrf_refused: entry(
    403,
    "permission_error",
    "A write with the session cookie comes from another site, or lacks the header x-umpire-csrf.",
  ),
  origin_refused: entry(
    403,
    "permission_error",
    "A web page of another site calls an endpoint that is not open to it.",
  ),
  conflict: entry(409, "invalid_request_error", "The state of the resource prevents the operation."),
  body_over_limit: entry(
    413,
    "invalid_request_error",
    "The request body exceeds the size limit of this operation.",
  ),
  not_json: entry(
    415,
    "invalid_request_error",
    "The request does not have the content type of the operation: JSON, or what it names.",
  ),
  unsupported_encoding: entry(
    415,
    "invalid_request_error",
    "The Content-Encoding is not gzip, deflate or br, or the body is not what it says.",
  ),
  precondition_failed: entry(
    412,
    "invalid_request_error",
    "The resource has changed since it was read: If-Match names another version.",
  ),
  invalid_header: entry(400, "invalid_request_error", "A header that the operation reads is malformed."),
  idempotency_key_reused: invalid("The Idempotency-Key was used before with another body."),
  invalid_signature: entry(
    400,
    "invalid_request_error",
    "The signature of an event of the payment provider does not match.",
  ),
  malformed_json: entry(400, "invalid_request_error", "The request body is not JSON."),
  invalid_query: entry(400, "invalid_request_error", "A query parameter is missing or invalid."),
  invalid_body: invalid("The JSON body does not match the schema, or holds a value that is refused."),
  previous_response_not_found: entry(
    404,
    "invalid_request_error",
    "The response to continue is not stored, or not of this connection.",
  ),
  response_not_running: entry(409, "invalid_request_error", "The response has already ended."),
  response_in_progress: entry(
    409,
    "invalid_request_error",
    "Another response is being written on this connection.",
  ),
  websocket_connection_limit_reached: entry(
    400,
    "invalid_request_error",
    "The connection has lasted as long as one may.",
  ),
  upgrade_required: entry(426, "invalid_request_error", "This address speaks WebSocket only."),

  invalid_exchange: entry(
    400,
    "invalid_request_error",
    "A token request is malformed; OAuth calls it invalid_request.",
  ),
  unsupported_grant_type: entry(
    400,
    "invalid_request_error",
    "A token request asks for something other than a token exchange.",
  ),
  invalid_grant: entry(
    400,
    "invalid_request_error",
    "The token or certificate is not trusted, or the provider's rules do not let it in.",
  ),
  invalid_target: entry(
    400,
    "invalid_request_error",
    "The token request names no active provider of this kind.",
  ),

  invalid_json: invalid("The body is not JSON, or uses JSON that cannot be read without loss."),
  unsupported_content_type: invalid("The content type is not application/json."),
  invalid_request: invalid("A field is missing, has the wrong type, or breaks a rule of the contract."),
  unknown_field: invalid("The request has a field that the contract does not name."),
  unsupported_input: invalid("The input holds something other than user text."),
  body_too_large: invalid("The JSON body exceeds 8 MiB."),
  input_too_large: invalid("The combined input text or rendered state exceeds 4 MiB."),
  input_blank: invalid("The input text is blank, or the rendered state is empty."),
  too_many_questions: invalid("There are more than 4096 questions."),
  too_many_branches: invalid("The questions expand to more than 4096 branches."),
  question_too_large: invalid("An expanded question exceeds 16 KiB."),
  duplicate_choice: invalid("Two options of a choice have the same value."),
  unknown_model: invalid("No model of this name is in the catalog."),
  decisions_unsupported: invalid(
    "No worker of the model can answer decisions: they need tokens, log-probabilities and a chat template.",
  ),
  model_disabled: invalid("The model is switched off."),
  unknown_routing_hint: invalid("The routing hint names no known region."),
  context_length_exceeded: invalid("The request does not fit the context of the model."),
  unsupported_parameter: invalid("The request uses a parameter that this server does not honour."),
  thread_unsupported_request: invalid(
    "The request names a thread of Anthropic's, which this server does not keep: its clients then send the whole conversation.",
  ),
  unknown_parameter: invalid("The request has a parameter that the API does not name."),
  guardrail_blocked: invalid("A guardrail of the organization blocked the request."),
  model_not_found: invalid("No model of this name is in the catalog (OpenAI-compatible endpoints)."),

  rate_limited: entry(
    429,
    "rate_limit_error",
    "Too many requests; the retry-after header says when to try again.",
  ),
  overloaded: entry(429, "rate_limit_error", "Every worker that could serve this request is full."),

  client_closed: entry(
    499,
    "server_error",
    "The client disconnected before the response; recorded, never sent.",
  ),
  routing_failed: entry(500, "server_error", "Every worker that could serve this request failed."),
  inference_failed: entry(500, "server_error", "The engine failed while it worked on this request."),
  guardrail_failed: entry(
    500,
    "server_error",
    "A guardrail that fails closed could not check the request or its answer.",
  ),
  payment_provider_failed: entry(500, "server_error", "The payment provider did not answer or refused."),
  metering_unavailable: entry(
    500,
    "server_error",
    "Usage cannot be recorded now: the journal is full, or its disk fails.",
  ),
  invalid_worker_response: entry(500, "server_error", "A worker answered something that cannot be used."),
  internal: entry(500, "server_error", "An unexpected failure; the request id finds it in the log."),
  not_ready: entry(503, "server_error", "The server is starting, stopping, or cannot reach what it needs."),
  store_unavailable: entry(
    503,
    "server_error",
    "The database does not answer, and what is known without it is not enough; the retry-after header says when to try again.",
  ),
  storage_full: entry(
    507,
    "server_error",
    "The disk has no room for what was sent: what is left is reserved for the record of usage.",
  ),
  over_capacity: entry(
    503,
    "server_error",
    "The server holds as many bytes of requests and answers as it may; the retry-after header says when to try again.",
  ),
  analytics_not_configured: entry(503, "server_error", "No analytics engine is configured."),
} as const satisfies Record<string, FaultEntry>

export type FaultCode = keyof typeof faultCatalog

/** Of every endpoint that runs a model. */
export const meteredErrors: readonly FaultCode[] = [
  "billing_required",
  "insufficient_credits",
  "spend_limit_exceeded",
  "payment_method_required",
  "key_budget_exceeded",
  "tag_budget_exceeded",
  "model_denied",
  "region_denied",
  "model_access_required",
  "invalid_json",
  "unsupported_content_type",
  "invalid_request",
  "model_disabled",
  "unknown_routing_hint",
  "context_length_exceeded",
  "overloaded",
  "routing_failed",
  "inference_failed",
  "metering_unavailable",
  "invalid_worker_response",
]

/** Clients know what a refusal means by its status: 400 for a request, 404 for a model, Anthropic's also 529 for overload. */
const clientStatuses: Partial<Record<Surface, Partial<Record<FaultCode, number>>>> = {
  openai: { model_not_found: 404 },
  mcp: {},
  anthropic: { model_not_found: 404, overloaded: 529, over_capacity: 529 },
}
const unprocessable = 422

/** The status that a code has on a surface. */
export function statusOn(surface: Surface, code: FaultCode): number {
  const { status } = faultCatalog[code]
  const known = clientStatuses[surface]
  return known ? (known[code] ?? (status === unprocessable ? 400 : status)) : status
}

interface FaultOptions {
  /** What went wrong underneath; logged, never sent. */
  readonly cause?: unknown
  /** Sent as `details` on the Platform API: the offending paths. */
  readonly details?: unknown
  /** Sent as `param` on the OpenAI-compatible endpoints. */
  readonly param?: string
  /** For 429: when a retry can succeed. */
  readonly retryAfterMs?: number
}

/** An expected failure. Its message is public: no secret, no path, no stack. Only `server` turns it into a reply. */
export class Fault extends Error {
  override readonly name: string = "Fault"
  readonly code: FaultCode
  readonly details: unknown
  readonly param: string | undefined
  readonly retryAfterMs: number | undefined

  constructor(code: FaultCode, sentence: string, options: FaultOptions = {}) {
    super(sentence, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.details = options.details
    this.param = options.param
    this.retryAfterMs = options.retryAfterMs
  }

  get status(): number {
    return faultCatalog[this.code].status
  }
}
