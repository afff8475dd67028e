/** What is known of the models that come with Umpire; the figures are those of model/MODEL_CARD.md and docs/speed.md. */
import type { ModelAbout } from "../contract/platform/models.ts"

const licence = "Apache-2.0"

/** Shares of right answers on kept-back rows, and the processor time of three questions about 105 tokens. */
const measured = (figures: Readonly<Record<"sets" | "predicate" | "choice" | "score" | "time", string>>) => [
  { name: "Right on 18 public sets", value: figures.sets },
  { name: "Right on yes or no", value: figures.predicate },
  { name: "Right on choices", value: figures.choice },
  { name: "Right on scales", value: figures.score },
  { name: "Processor time of 3 questions", value: figures.time },
]

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
