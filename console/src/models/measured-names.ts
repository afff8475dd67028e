/** What the server calls the figures of the models that come with Umpire, in the language of the console. */
import { t } from "../i18n/translate.ts"

export const measuredNames: Readonly<Record<string, string>> = {
  "Right on 18 public sets": t("Right on 18 public sets"),
  "Right on yes or no": t("Right on yes or no"),
  "Right on choices": t("Right on choices"),
  "Right on scales": t("Right on scales"),
  "Processor time of 3 questions": t("Processor time of 3 questions"),
}
