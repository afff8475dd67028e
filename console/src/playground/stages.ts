/** The stages of a virtual model, read from the header that tells them. */
import type { OrgModel } from "../../../src/contract/platform/models.ts"

export interface AnsweredStage {
  readonly model: string
  /** `success`, or the code of the error. */
  readonly result: string
  readonly questions: number
  readonly tokens: number
}

/** Each is `MODEL;result=RESULT;questions=N;tokens=N;ms=N;cost=USD`; none where the model is no virtual one. */
export function readStages(header: string | null): AnsweredStage[] {
  if (header === null) return []
  return header.split(", ").map((stage) => {
    const [model = "", ...fields] = stage.split(";")
    const values = new Map(fields.map((field) => field.split("=") as [string, string]))
    return {
      model: decodeURIComponent(model),
      result: values.get("result") ?? "",
      questions: Number(values.get("questions") ?? 0),
      tokens: Number(values.get("tokens") ?? 0),
    }
  })
}

/** Null where a model is priced by the second: what the server measured is not known here. */
export function priceOf(
  used: readonly Pick<AnsweredStage, "model" | "tokens">[],
  models: readonly OrgModel[],
): number | null {
  let sum = 0
  for (const { model, tokens } of used) {
    const price = models.find(({ model_sku }) => model_sku === model)
    if (!price || price.price_per_sec_usd !== 0) return null
    sum += (tokens * price.price_m_input_tokens_usd) / 1e6
  }
  return sum
}
