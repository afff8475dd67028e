/** What each measure says, in one plain sentence, wherever it stands. */
import { t } from "../i18n/translate.ts"
export const measureWords = {
  accuracy: t("The share of rows whose answer is the label."),
  majority: t("The accuracy of always giving the most frequent label: a model should be well above it."),
  macroF1: t(
    "For each answer, how well its rows are found and no others taken for it; rare answers count as much as frequent ones, 1 is best.",
  ),
  brier: t(
    "The squared distance between the stated probabilities and the truth; 0 is best, and an even yes or no is 0.5.",
  ),
  calibrationError: t(
    "ECE: by how much the stated confidence misses the share of right answers, on average; 0% is best.",
  ),
  logLoss: t("Grows fast when the model is sure of a wrong answer; 0 is best."),
  kappa: t("How far two agree beyond what chance alone would give: 1 is always, 0 is as by chance."),
} as const
