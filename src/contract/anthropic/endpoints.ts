/** Anthropic's endpoints: its clients work after changing their key and their base address. */
import { z } from "zod"
import { idCharactersMax } from "../openai/limits.ts"
import { endpoint } from "../endpoint.ts"
import type { FaultCode } from "../errors.ts"
import { generationErrors } from "../openai/endpoints.ts"
import { CountTokensRequest, Message, MessagesRequest, TokenCount } from "./messages.ts"

const access = { principals: ["session", "key", "workload"], permission: "inference" } as const
const base = { area: "Inference", surface: "anthropic", access } as const
/** `beta` says that a client uses fields of a preview; those that are not known are refused all the same. */
const query = z.object({ beta: z.string().max(idCharactersMax).optional() })
const errors: readonly FaultCode[] = [...generationErrors, "invalid_header", "invalid_query"]

export const createMessage = endpoint({
  ...base,
  method: "POST",
  path: "/v1/messages",
  query,
  summary: "Create a message",
  body: MessagesRequest,
  reads: "bytes",
  output: Message,
  streams: true,
  callSource: "messages",
  errors,
})

export const countMessageTokens = endpoint({
  ...base,
  method: "POST",
  path: "/v1/messages/count_tokens",
  query,
  summary: "Count the tokens of a message",
  body: CountTokensRequest,
  reads: "bytes",
  output: TokenCount,
  callSource: "count_tokens",
  errors,
})

export const anthropicEndpoints = { createMessage, countMessageTokens }
