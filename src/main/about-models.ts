/** What is known of the models that come with Umpire; the figures are those of model/MODEL_CARD.md and docs/speed.md. */
import type { ModelAbout } from "../contract/platform/models.ts"

const licence = "Apache-2.0"

/** Shares of right answers on kept-back rows, and the processor time of three questions about 105 tokens. */
const measured = (values: {
  readonly sets?: string
  readonly predicate: string
  readonly choice: string
  readonly score: string
  readonly time?: string
}): ModelAbout["measured"] => {
  const figures: [name: string, value: string | undefined][] = [
    ["Right on 18 public sets", values.sets],
    ["Right on yes or no", values.predicate],
    ["Right on choices", values.choice],
    ["Right on scales", values.score],
    ["Processor time of 3 questions", values.time],
  ]
  return figures.flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }]))
}

const known: Readonly<Record<string, ModelAbout>> = {
  "umpire-decide": {
    parameters: "110M",
    file_bytes: 115_313_108,
    languages: ["en"],
    licence,
    measured: measured({ sets: "80%", predicate: "83%", choice: "70%", score: "72%", time: "127 ms" }),
  },
  "umpire-decide-small": {
    parameters: "33M",
    file_bytes: 35_419_765,
    languages: ["en"],
    licence,
    measured: measured({ sets: "78%", predicate: "78%", choice: "60%", score: "71%", time: "72 ms" }),
  },
  "umpire-decide-multilingual": {
    parameters: "106M",
    file_bytes: 74_305_288,
    languages: "en de fr es pt it nl pl tr ru ar hi ja ko zh".split(" "),
    licence,
    measured: measured({ predicate: "75%", choice: "55%", score: "66%" }),
  },
  "smollm2-135m-instruct": {
    parameters: "135M",
    file_bytes: 98_362_432,
    languages: ["en"],
    licence,
    measured: [],
  },
}

/** Of the default model it is that of the one that answers under its name. */
export const aboutModels =
  (decisionModel = "umpire-decide") =>
  (sku: string): ModelAbout | null =>
    known[sku === "umpire-decide" ? decisionModel : sku] ?? null
