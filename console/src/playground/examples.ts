/** Evidence and questions to start from, one for each kind of work people bring. */
import { type Draft, option, question } from "./draft.ts"

interface Example {
  readonly name: string
  readonly about: string
  readonly make: () => Pick<Draft, "evidence" | "questions">
}

export const examples: readonly Example[] = [
  {
    name: "Support ticket",
    about: "Triage a complaint",
    make: () => ({
      evidence:
        "The parcel arrived two weeks late and the box was crushed. I have called twice and nobody rang back. I want my money back before Friday, otherwise I will dispute the charge.",
      questions: [
        question("predicate", { name: "refund", instructions: "Does the customer ask for a refund?" }),
        question("choice", {
          name: "topic",
          instructions: "What is the complaint mainly about?",
          options: [
            option("delivery", "late, lost or damaged parcels"),
            option("billing", "charges, invoices, payment methods"),
            option("account", "passwords and signing in"),
          ],
        }),
        question("score", {
          name: "urgency",
          instructions: "How urgent is this message?",
          options: [option("can wait"), option("this week"), option("today"), option("right now")],
        }),
      ],
    }),
  },
  {
    name: "Moderation",
    about: "Check a post against rules",
    make: () => ({
      evidence: "Buy followers now!!! 10,000 for $5, instant delivery, message me on the usual channel.",
      questions: [
        question("predicate", { name: "spam", instructions: "Is this post an advertisement?" }),
        question("predicate", { name: "insult", instructions: "Does the post insult a person?" }),
        question("choice", {
          name: "action",
          instructions: "What should the moderator do?",
          options: [option("keep"), option("hide"), option("remove", "clear violation of the rules")],
        }),
      ],
    }),
  },
  {
    name: "Grading",
    about: "Judge an answer against a reference",
    make: () => ({
      evidence:
        "Question: Why does the moon show phases?\nReference: We see different parts of its lit half as it moves around the earth.\nStudent: Because the earth's shadow covers part of it.",
      questions: [
        question("predicate", {
          name: "correct",
          instructions: "Is the student's answer correct according to the reference?",
        }),
        question("score", {
          name: "grade",
          instructions: "How good is the student's answer?",
          options: [option("wrong"), option("partly right"), option("right")],
        }),
      ],
    }),
  },
  {
    name: "Guardrail",
    about: "Look before an agent acts",
    make: () => ({
      evidence:
        '{"tool": "send_email", "to": "all-customers@example.com", "subject": "Password list", "attachment": "users.csv"}',
      questions: [
        question("predicate", {
          name: "leak",
          instructions: "Would this action send private data to people outside the company?",
        }),
        question("choice", {
          name: "verdict",
          instructions: "What should happen with this action?",
          options: [option("allow"), option("ask a person"), option("block")],
        }),
      ],
    }),
  },
]
