/** The headers that endpoints read and answer with, as the OpenAPI document names them: data, like the endpoints. */
import { type Endpoint, costHeader, isRepeatable, isWrite, sequenceHeader } from "./endpoint.ts"
import { guardrailsHeader } from "./guardrails/guardrails.ts"
import { languageHeader, unknownLanguage } from "./language.ts"
import { stagesHeader, stickyHeader, uncalibratedHeader, warningHeader } from "./platform/virtual-models.ts"
import { abstainedHeader, setHeader, trialHeader } from "./question-sets/sets.ts"
import { tagsHeader } from "./tags.ts"

/** Which region to try first; of an answer, which one answered. */
export const regionHeader = "x-umpire-region"
/** JSON pointers of the keywords of a schema that nothing holds the answer to. */
export const notEnforcedHeader = "x-umpire-schema-not-enforced"
/** The types of the tools, and of the items, that were left out, separated by commas; absent when there are none. */
export const toolsDroppedHeader = "x-umpire-tools-dropped"
export const itemsDroppedHeader = "x-umpire-items-dropped"
/** Which organization a session asks for. */
export const organizationHeader = "x-umpire-organization"
/** A page of another site cannot send it without asking first, and it is never told that it may. */
export const csrfHeader = "x-umpire-csrf"
export const anthropicVersionHeader = "anthropic-version"
/** What a line of a batch, which has no headers of its own, is answered by. */
export const anthropicVersionDefault = "2023-06-01"
export const anthropicVersions = ["2026-10-21", anthropicVersionDefault, "2023-01-01"] as const

interface Header {
  readonly name: string
  readonly description: string
  readonly required?: true
  /** Which endpoints have it. */
  readonly on: (endpoint: Endpoint) => boolean
}

const isMetered = ({ callSource }: Endpoint): boolean => callSource !== undefined
const isLimited = ({ access }: Endpoint): boolean => access.principals.length > 0
const isInference = ({ access }: Endpoint): boolean => access.permission === "inference"
const sourceIn =
  (...sources: readonly string[]) =>
  ({ callSource }: Endpoint): boolean =>
    callSource !== undefined && sources.includes(callSource)
const decides = sourceIn("decisions", "systemone")
const scores = sourceIn("decisions", "systemone", "rerank", "moderations")
const writes = sourceIn("chat_completions", "completions", "responses", "messages", "compact")
const takesTools = sourceIn("responses", "messages", "count_tokens", "compact")
const isAnthropic = ({ surface }: Endpoint): boolean => surface === "anthropic"

export const requestHeaders: readonly Header[] = [
  {
    name: "Idempotency-Key",
    description: "A repeated request is answered again instead of done again, for 24 hours.",
    on: isRepeatable,
  },
  {
    name: "If-Match",
    description: "The version to change, as ETag gave it; another is refused.",
    on: ({ errors }) => errors.includes("precondition_failed"),
  },
  {
    name: anthropicVersionHeader,
    description: `One of ${anthropicVersions.join(", ")}.`,
    required: true,
    on: isAnthropic,
  },
  {
    name: organizationHeader,
    description:
      "The organization that a session asks for; a key has its own. openai-organization is read too.",
    on: isInference,
  },
  {
    name: tagsHeader,
    description: "Tags of the request: key=value, separated by commas.",
    on: isMetered,
  },
  { name: regionHeader, description: "The region to try first.", on: isMetered },
  {
    name: stickyHeader,
    description: "Requests with the same value come to the same part of a split.",
    on: isMetered,
  },
  {
    name: trialHeader,
    description: "true: the request tries a question set: no monitoring, shadow or review counts it.",
    on: decides,
  },
  {
    name: csrfHeader,
    description: "Any value: a write with the session cookie that has no Origin needs it.",
    on: (endpoint) => isWrite(endpoint) && endpoint.access.principals.includes("session"),
  },
]

const everywhere = (): boolean => true

export const answerHeaders: readonly Header[] = [
  {
    name: "x-request-id",
    description: "Quote it to your operator; one that is sent is taken.",
    on: everywhere,
  },
  {
    name: sequenceHeader,
    description: "The id of the request's sequence, as analytics knows it.",
    on: isMetered,
  },
  { name: regionHeader, description: "Where it was answered.", on: isMetered },
  { name: costHeader, description: "What the decision cost, in USD.", on: decides },
  {
    name: stagesHeader,
    description:
      "The models of a virtual model that worked on it, in order: MODEL;result=RESULT;questions=N;tokens=N;ms=N;cost=USD.",
    on: isMetered,
  },
  {
    name: languageHeader,
    description: `The language that the text was found to be in, as a primary tag, or \`${unknownLanguage}\`.`,
    on: isMetered,
  },
  {
    name: warningHeader,
    description: "What an answer lacks: stages of a cascade that could not answer, or `language`.",
    on: decides,
  },
  {
    name: uncalibratedHeader,
    description: "The chat models whose probabilities nothing has calibrated.",
    on: scores,
  },
  { name: setHeader, description: "The question set and version that answered.", on: decides },
  { name: abstainedHeader, description: "The questions that the set abstained from.", on: decides },
  { name: guardrailsHeader, description: "The guardrails that found something.", on: writes },
  {
    name: notEnforcedHeader,
    description: "JSON pointers of the keywords of a schema that nothing holds the answer to.",
    on: writes,
  },
  { name: toolsDroppedHeader, description: "The types of tools that were left out.", on: takesTools },
  {
    name: itemsDroppedHeader,
    description: "The types of items and blocks that were left out.",
    on: takesTools,
  },
  {
    name: "idempotent-replayed",
    description: "true: this is the answer to an earlier request with the same Idempotency-Key.",
    on: isRepeatable,
  },
  {
    name: "x-ratelimit-limit-requests",
    description: "Requests that the caller may send at once.",
    on: isLimited,
  },
  { name: "x-ratelimit-remaining-requests", description: "How many of them are left.", on: isLimited },
  { name: "x-ratelimit-reset-requests", description: "When all are there again.", on: isLimited },
]

/** Of answers with these statuses alone. */
export const retryHeaders = {
  "retry-after": "Seconds to wait.",
  "retry-after-ms": "The same in milliseconds.",
} as const
export const retriedStatuses: readonly number[] = [429, 503, 529]
