/** How a model at another server decides, in words. */
import type { OrgModel } from "../../../src/contract/platform/models.ts"

type Method = NonNullable<OrgModel["decides"]>

const methods: Record<Method, string> = {
  native: "its own endpoint for decisions",
  tokens: "the likelihood of yes and no",
  logprobs: "log-probabilities of its answer",
  schema: "structured answers with a confidence that it states",
  text: "plain text with a confidence that it states",
}

export const decidesBy = (method: Method): string => `Decides by ${methods[method]}`

/** What the numbers of a model that nothing calibrates are. */
export const uncalibratedWords =
  "Its probabilities are the model's own words: they promise nothing until it is calibrated."
