/** Which of an organization's models can do what. */
import type { OrgModel } from "../../../src/contract/platform/models.ts"

export type ModelUse = "decisions" | "chat" | "embeddings"

export function canDo({ model_kind, tools_supported }: OrgModel, use: ModelUse): boolean {
  if (use === "embeddings") return model_kind === "embedding"
  // Encoders decide; they write nothing and so call no tools.
  return model_kind === "generation" && (use === "decisions" || tools_supported)
}

/** What a model is compared with at first: another one that decides, or itself where there is none. */
export function rivalOf(model: string, models: readonly OrgModel[]): string {
  return (
    firstModel(
      models.filter(({ model_sku }) => model_sku !== model),
      "decisions",
    ) || model
  )
}

/** The first that may be used now; empty where none may. */
export function firstModel(models: readonly OrgModel[], use: ModelUse): string {
  return models.find((one) => one.status === "active" && canDo(one, use))?.model_sku ?? ""
}
