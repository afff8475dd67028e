/** The handlers of every endpoint that runs a model or reads what one wrote. */
import type { Handlers } from "../../contract/endpoint.ts"
import type { inferenceEndpoints } from "../../contract/openai/endpoints.ts"
import { chatHandler } from "./chat.ts"
import { embeddingHandler } from "./embed.ts"
import { moderationHandler } from "./moderate.ts"
import { modelHandlers } from "./models.ts"
import { compactHandler } from "./response-compact.ts"
import { rerankHandler } from "./rerank.ts"
import { type ResponseParts, responseHandlers } from "./responses.ts"

export function openaiHandlers(parts: ResponseParts): Handlers<typeof inferenceEndpoints> {
  return {
    createChatCompletion: chatHandler(parts),
    createEmbedding: embeddingHandler(parts),
    createRerank: rerankHandler(parts),
    createModeration: moderationHandler(parts),
    ...responseHandlers(parts),
    compactResponse: compactHandler(parts),
    ...modelHandlers(parts.catalog, parts.models),
  }
}
