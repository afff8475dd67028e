/**
 * Evidence and questions to start from, one for each kind of work people bring, with the answers that are right; in the language of the
 * page where a model has learnt it.
 */
import { language, t } from "../i18n/translate.ts"
import { type Draft, option, question } from "./draft.ts"
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import { firstModel, hasLearnt, linguistOf } from "./models.ts"

/** Writes the texts of an example in one language. */
export type Translate = (text: string) => string

export interface Example {
  readonly name: string
  readonly about: string
  readonly make: (t: Translate) => Pick<Draft, "evidence" | "questions">
  /** For each question: yes or no, the option, or the likeliest level. A test asks the models. */
  readonly right: (t: Translate) => readonly string[]
}

/**
 * An example for one of the models: the one that is `chosen`, where it has learnt the language of the page, or else another one that has.
 * Where none has, it is in English. Empty stands for a model that is not known yet.
 */
export function exampleDraft(
  { make }: Example,
  models: readonly OrgModel[],
  chosen = firstModel(models, "decisions"),
): Pick<Draft, "model" | "evidence" | "questions"> {
  if (language === "en") return { model: chosen, ...make(inEnglish) }
  const model = models.find(({ model_sku }) => model_sku === chosen)
  const linguist = linguistOf(models)
  const reader = [model, linguist].find((one) => one && hasLearnt(one, language))
  return reader || models.length === 0
    ? { model: reader?.model_sku ?? "", ...make(t) }
    : { model: chosen, ...make(inEnglish) }
}

const inEnglish: Translate = (text) => text

export const examples: readonly Example[] = [
  {
    name: t("Support ticket"),
    about: t("Triage a complaint"),
    right: (t) => ["yes", t("delivery"), t("angry")],
    make: (t) => ({
      evidence: t(
        "The parcel arrived two weeks late and the box was crushed. I have called twice and nobody rang back. I am furious and want my money back.",
      ),
      questions: [
        question("predicate", { name: "refund", instructions: t("Does the customer ask for a refund?") }),
        question("choice", {
          name: "topic",
          instructions: t("What is the complaint mainly about?"),
          options: [
            option(t("delivery"), t("late, lost or damaged parcels")),
            option(t("account"), t("passwords and signing in")),
            option(t("praise"), t("thanks and compliments")),
          ],
        }),
        question("score", {
          name: "mood",
          instructions: t("How angry is the customer?"),
          options: [option(t("calm")), option(t("annoyed")), option(t("angry"))],
        }),
      ],
    }),
  },
  {
    name: t("Moderation"),
    about: t("Check a post against rules"),
    right: (t) => ["yes", "no", t("spam")],
    make: (t) => ({
      evidence: t(
        "Buy followers now!!! 10,000 for $5, instant delivery. Click the link and win a free phone.",
      ),
      questions: [
        question("predicate", { name: "advertisement", instructions: t("Is this post an advertisement?") }),
        question("predicate", { name: "weather", instructions: t("Is this post about the weather?") }),
        question("choice", {
          name: "kind",
          instructions: t("What kind of post is this?"),
          options: [option(t("spam")), option(t("question")), option(t("news"))],
        }),
      ],
    }),
  },
  {
    name: t("Product review"),
    about: t("Read what a customer thinks"),
    right: (t) => ["yes", t("positive"), t("very good")],
    make: (t) => ({
      evidence: t(
        "Best headphones I have ever owned. The sound is wonderful, they are light, and the battery lasts for days. I recommend them to everyone.",
      ),
      questions: [
        question("predicate", {
          name: "recommends",
          instructions: t("Does the reviewer recommend the product?"),
        }),
        question("choice", {
          name: "sentiment",
          instructions: t("What is the sentiment of the review?"),
          options: [option(t("positive")), option(t("negative")), option(t("neutral"))],
        }),
        question("score", {
          name: "rating",
          instructions: t("How good does the reviewer find the product?"),
          options: [option(t("bad")), option(t("good")), option(t("very good"))],
        }),
      ],
    }),
  },
  {
    name: t("Routing"),
    about: t("Send a message to the right team"),
    right: (t) => [t("billing"), "yes"],
    make: (t) => ({
      evidence: t("Hello, my credit card was charged twice for the same invoice. Please correct it."),
      questions: [
        question("choice", {
          name: "team",
          instructions: t("Which team should handle this message?"),
          options: [
            option(t("billing"), t("invoices and payments")),
            option(t("shipping"), t("parcels")),
            option(t("jobs"), t("applications")),
          ],
        }),
        question("predicate", { name: "payment", instructions: t("Is the message about a payment?") }),
      ],
    }),
  },
]
