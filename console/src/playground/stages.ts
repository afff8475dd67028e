/** The stages of a virtual model, read from the header that tells them. */
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
