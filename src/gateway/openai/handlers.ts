/** The handlers of every OpenAI-compatible endpoint. */
import type { Handlers } from "../../contract/endpoint.ts"
import type { inferenceEndpoints } from "../../contract/openai/endpoints.ts"
import { chatHandler } from "./chat.ts"
import { embeddingHandler } from "./embed.ts"
import { modelHandlers } from "./models.ts"
import { type ResponseParts, responseHandlers } from "./responses.ts"

export function inferenceHandlers(parts: ResponseParts): Handlers<typeof inferenceEndpoints> {
  return {
    createChatCompletion: chatHandler(parts),
    createEmbedding: embeddingHandler(parts),
    ...responseHandlers(parts),
    ...modelHandlers(parts.catalog),
  }
}
