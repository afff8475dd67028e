/** The handlers of every endpoint that runs a model or reads what one wrote, and GET /v1/models, the catalog. */
import type { Catalog, Model } from "../../base/catalog.ts"
import type { Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { inferenceEndpoints, ModelObject } from "../../contract/openai/endpoints.ts"
import { listOf } from "../batches/files.ts"
import type { ModelResolver } from "../organization-access.ts"
import { chatHandler } from "./chat.ts"
import { completionHandler } from "./completions.ts"
import { embeddingHandler } from "./embed.ts"
import { moderationHandler } from "./moderate.ts"
import { rerankHandler } from "./rerank.ts"
import { compactHandler } from "./response-compact.ts"
import type { StoredChats } from "./stored-chats.ts"
import { type ResponseDeps, responseHandlers } from "./responses.ts"

export function openaiHandlers(
  deps: ResponseDeps & { readonly storedChats: StoredChats },
): Handlers<typeof inferenceEndpoints> {
  return {
    createChatCompletion: chatHandler(deps, deps.storedChats),
    createCompletion: completionHandler(deps),
    createEmbedding: embeddingHandler(deps),
    createRerank: rerankHandler(deps, "1"),
    createRerankV2: rerankHandler(deps, "2"),
    createModeration: moderationHandler(deps),
    ...responseHandlers(deps),
    compactResponse: compactHandler(deps),
    ...modelHandlers(deps.catalog, deps.models),
  }
}

type ModelHandlers = Pick<Handlers<typeof inferenceEndpoints>, "listModels" | "getModel">

type ListedModel = Pick<Model, "sku" | "description" | "developer" | "releaseDate"> & {
  readonly contextTokensMax: number | null
}

function modelHandlers(catalog: Catalog, resolver: Pick<ModelResolver, "list">): ModelHandlers {
  const virtualOf = async (organizationId: string | undefined): Promise<ListedModel[]> => {
    const all = await resolver.list(organizationId ?? "")
    return all
      .filter(({ name, enabled }) => enabled && catalog.find(name) === null)
      .map(({ name, description }) => ({
        sku: name,
        description,
        developer: null,
        releaseDate: null,
        contextTokensMax: null,
      }))
  }
  return {
    listModels: async ({ membership }) => {
      const plain: ListedModel[] = catalog.list().filter(({ enabled }) => enabled)
      const models = [...plain, ...(await virtualOf(membership?.organizationId))]
      return {
        ...listOf(models.map(toObject), false),
        models: models.map(({ sku, description, releaseDate }) => ({
          name: sku,
          description,
          release_date: releaseDate,
        })),
      }
    },
    getModel: async ({ params, membership }) => {
      const named = catalog.find(params.model)
      const plain = named?.enabled ? named : undefined
      const virtual = named ? [] : await virtualOf(membership?.organizationId)
      const model = plain ?? virtual.find(({ sku }) => sku === params.model)
      if (!model)
        throw new Fault("not_found", "Cannot find the model: GET /v1/models lists those there are", {
          param: "model",
        })
      return toObject(model)
    },
  }
}

function toObject({ sku, developer, releaseDate, contextTokensMax }: ListedModel): ModelObject {
  const createdMs = releaseDate === null ? 0 : Date.parse(releaseDate)
  return {
    id: sku,
    object: "model",
    created: Math.floor(createdMs / 1000),
    owned_by: developer ?? "umpire",
    type: "model",
    display_name: sku,
    created_at: new Date(createdMs).toISOString(),
    lifecycle: "active",
    line: null,
    capabilities: null,
    deprecated_at: null,
    retires_at: null,
    max_input_tokens: contextTokensMax,
    max_tokens: contextTokensMax,
  }
}
