/** How a model at another server decides, in words. */
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import { t } from "../i18n/translate.ts"

type Method = NonNullable<OrgModel["decides"]>

const methods: Record<Method, string> = {
  native: t("Decides by its own endpoint for decisions"),
  tokens: t("Decides by the likelihood of yes and no"),
  logprobs: t("Decides by log-probabilities of its answer"),
  schema: t("Decides by structured answers with a confidence that it states"),
  text: t("Decides by plain text with a confidence that it states"),
}

export const decidesBy = (method: Method): string => methods[method]

/** What the numbers of a model that nothing calibrates are. */
export const uncalibratedWords = t(
  "Its probabilities are the model's own words: they promise nothing until it is calibrated.",
)
