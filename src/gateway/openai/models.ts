/** Answers GET /v1/models: the catalog, as OpenAI's clients read it. */
import type { Catalog, Model } from "../../base/catalog.ts"
import type { Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { inferenceEndpoints } from "../../contract/openai/endpoints.ts"
import type { ModelObject } from "../../contract/openai/models.ts"

type ModelHandlers = Pick<Handlers<typeof inferenceEndpoints>, "listModels" | "getModel">

export function modelHandlers(catalog: Catalog): ModelHandlers {
  return {
    listModels: async () => {
      const models = catalog.list().filter(({ enabled }) => enabled)
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
    getModel: async ({ params }) => {
      const model = catalog.find(params.model)
      if (!model?.enabled)
        throw new Fault("not_found", "Cannot find the model: GET /v1/models lists those there are", {
          param: "model",
        })
      return toObject(model)
    },
  }
}

function toObject({ sku, developer, releaseDate }: Model): ModelObject {
  return {
    id: sku,
    object: "model",
    created: releaseDate === null ? 0 : Math.floor(Date.parse(releaseDate) / 1000),
    owned_by: developer ?? "umpire",
  }
}
