/** The handlers of every endpoint that runs a model or reads what one wrote, and GET /v1/models, the catalog. */
import type { Catalog, Model } from "../../base/catalog.ts"
import type { Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { inferenceEndpoints, ModelObject } from "../../contract/openai/endpoints.ts"
import type { ModelResolver } from "../organization-access.ts"
import { chatHandler } from "./chat.ts"
import { embeddingHandler } from "./embed.ts"
import { moderationHandler } from "./moderate.ts"
import { rerankHandler } from "./rerank.ts"
import { compactHandler } from "./response-compact.ts"
import { type ResponseDeps, responseHandlers } from "./responses.ts"

export function openaiHandlers(deps: ResponseDeps): Handlers<typeof inferenceEndpoints> {
  return {
    createChatCompletion: chatHandler(deps),
    createEmbedding: embeddingHandler(deps),
    createRerank: rerankHandler(deps),
    createModeration: moderationHandler(deps),
    ...responseHandlers(deps),
    compactResponse: compactHandler(deps),
    ...modelHandlers(deps.catalog, deps.models),
  }
}

type ModelHandlers = Pick<Handlers<typeof inferenceEndpoints>, "listModels" | "getModel">

type ListedModel = Pick<Model, "sku" | "description" | "developer" | "releaseDate">

export function modelHandlers(catalog: Catalog, resolver: Pick<ModelResolver, "list">): ModelHandlers {
  const virtualOf = async (organizationId: string | undefined): Promise<ListedModel[]> => {
    const all = await resolver.list(organizationId ?? "")
    return all
      .filter(({ name, enabled }) => enabled && catalog.find(name) === null)
      .map(({ name, description }) => ({ sku: name, description, developer: null, releaseDate: null }))
  }
  return {
    listModels: async ({ membership }) => {
      const plain: ListedModel[] = catalog.list().filter(({ enabled }) => enabled)
      const models = [...plain, ...(await virtualOf(membership?.organizationId))]
      return {
        object: "list",
        data: models.map(toObject),
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

function toObject({ sku, developer, releaseDate }: ListedModel): ModelObject {
  return {
    id: sku,
    object: "model",
    created: releaseDate === null ? 0 : Math.floor(Date.parse(releaseDate) / 1000),
    owned_by: developer ?? "umpire",
  }
}
