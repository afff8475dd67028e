/** Which of an organization's models can do what. */
import type { OrgModel } from "../../../src/contract/platform/models.ts"

export type ModelUse = "decisions" | "chat" | "embeddings"

export function canDo({ model_kind }: OrgModel, use: ModelUse): boolean {
  return use === "embeddings" ? model_kind === "embedding" : model_kind === "generation"
}

/** The first that may be used now; empty where none may. */
export function firstModel(models: readonly OrgModel[], use: ModelUse): string {
  return models.find((one) => one.status === "active" && canDo(one, use))?.model_sku ?? ""
}
