/** Which of an organization's models can do what. */
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import { isForeign } from "./weak-spots.ts"

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

/** The one that has learnt most languages, where one that decides has learnt more than one. */
export const linguistOf = (models: readonly OrgModel[]): OrgModel | undefined =>
  models
    .filter((one) => one.status === "active" && canDo(one, "decisions") && languagesLearnt(one) > 1)
    .toSorted((a, b) => languagesLearnt(b) - languagesLearnt(a))[0]

/** What a set for these texts is begun with: where they are in another language than English, a model that has learnt more. */
export function modelForTexts(models: readonly OrgModel[], texts: readonly string[]): string {
  const linguist = isForeign(texts.join("\n")) ? linguistOf(models) : undefined
  return linguist?.model_sku ?? firstModel(models, "decisions")
}

export const hasLearnt = ({ about }: OrgModel, language: string): boolean =>
  about?.languages.includes(language) ?? false

const languagesLearnt = ({ about }: OrgModel): number => about?.languages.length ?? 0
