/** Evidence and questions to start from, one for each kind of work people bring, with the answers that are right. */
import { type Draft, option, question } from "./draft.ts"
import { t } from "../i18n/translate.ts"

export interface Example {
  readonly name: string
  readonly about: string
  readonly make: () => Pick<Draft, "evidence" | "questions">
  /** For each question: yes or no, the option, or the likeliest level. A test asks the default model. */
  readonly right: readonly string[]
}

export const examples: readonly Example[] = [
  {
    name: t("Support ticket"),
    about: t("Triage a complaint"),
    right: ["yes", "delivery", "angry"],
    make: () => ({
      evidence:
        "The parcel arrived two weeks late and the box was crushed. I have called twice and nobody rang back. I am furious and want my money back.",
      questions: [
        question("predicate", { name: "refund", instructions: "Does the customer ask for a refund?" }),
        question("choice", {
          name: "topic",
          instructions: "What is the complaint mainly about?",
          options: [
            option("delivery", "late, lost or damaged parcels"),
            option("account", "passwords and signing in"),
            option("praise", "thanks and compliments"),
          ],
        }),
        question("score", {
          name: "mood",
          instructions: "How angry is the customer?",
          options: [option("calm"), option("annoyed"), option("angry")],
        }),
      ],
    }),
  },
  {
    name: t("Moderation"),
    about: t("Check a post against rules"),
    right: ["yes", "no", "spam"],
    make: () => ({
      evidence: "Buy followers now!!! 10,000 for $5, instant delivery. Click the link and win a free phone.",
      questions: [
        question("predicate", { name: "advertisement", instructions: "Is this post an advertisement?" }),
        question("predicate", { name: "weather", instructions: "Is this post about the weather?" }),
        question("choice", {
          name: "kind",
          instructions: "What kind of post is this?",
          options: [option("spam"), option("question"), option("news")],
        }),
      ],
    }),
  },
  {
    name: t("Review"),
    about: t("Read what a customer thinks"),
    right: ["yes", "positive", "very good"],
    make: () => ({
      evidence:
        "Best headphones I have ever owned. The sound is wonderful, they are light, and the battery lasts for days. I recommend them to everyone.",
      questions: [
        question("predicate", {
          name: "recommends",
          instructions: "Does the reviewer recommend the product?",
        }),
        question("choice", {
          name: "sentiment",
          instructions: "What is the sentiment of the review?",
          options: [option("positive"), option("negative"), option("neutral")],
        }),
        question("score", {
          name: "rating",
          instructions: "How good does the reviewer find the product?",
          options: [option("bad"), option("good"), option("very good")],
        }),
      ],
    }),
  },
  {
    name: t("Routing"),
    about: t("Send a message to the right team"),
    right: ["billing", "yes"],
    make: () => ({
      evidence: "Hello, my credit card was charged twice for the same invoice. Please correct it.",
      questions: [
        question("choice", {
          name: "team",
          instructions: "Which team should handle this message?",
          options: [
            option("billing", "invoices and payments"),
            option("shipping", "parcels"),
            option("jobs", "applications"),
          ],
        }),
        question("predicate", { name: "payment", instructions: "Is the message about a payment?" }),
      ],
    }),
  },
]
