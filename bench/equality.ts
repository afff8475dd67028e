/** How far the scorer's answers lie from whole prompts evaluated one by one, with everything on that makes it fast. */
import { branchesOf, scoreNaively } from "../test/naive-scorer.ts"
import type { Ways } from "./ways.ts"

const never = new AbortController().signal

/** Real texts, because random tokens leave a trained model undecided and rounding without effect. */
export async function printEquality({ scorer, plainContext }: Ways): Promise<void> {
  const jobs = await Promise.all(
    EVIDENCE.map((evidence) =>
      scorer.prepare({ organizationId: "equality", evidence, branches: questions() }, never),
    ),
  )
  const together = await Promise.all(jobs.map((job) => scorer.run(job, never)))
  const again = await Promise.all(jobs.map((job) => scorer.run(job, never)))
  const found = { branches: 0, furthest: 0, cached: 0, flips: 0 }
  for (const [index, job] of jobs.entries()) {
    const naive = await scoreNaively(plainContext, job.prefix, branchesOf(job.branches))
    for (const [branch, difference] of naive.entries()) {
      const expected = sigmoid(difference)
      const [first, second] = [together, again].map((answers) =>
        sigmoid(answers[index]?.[branch] ?? Number.NaN),
      )
      found.branches++
      found.furthest = Math.max(found.furthest, Math.abs((first ?? Number.NaN) - expected))
      found.cached = Math.max(found.cached, Math.abs((second ?? Number.NaN) - expected))
      if ((first ?? 0) > 0.5 !== expected > 0.5) found.flips++
    }
  }
  console.log(
    `\n  equality with whole prompts, ${found.branches} branches of ${jobs.length} texts in one batch: ` +
      `max |dp| ${found.furthest.toExponential(1)}, with the evidence cached ${found.cached.toExponential(1)}, ${found.flips} flips`,
  )
}

const sigmoid = (difference: number): number => 1 / (1 + Math.exp(-difference))

const EVIDENCE = [
  "I was charged twice for my headphones and nobody answers my mails. Please refund one of the payments.",
  "The app crashes when I open the settings page since the last update. I have reinstalled it, without success.",
  "Congratulations! You have won a holiday for two. Click the link and confirm your card to claim your prize.",
  "Where is my parcel? It was due four days ago and the tracking page has not changed since Monday.",
  "Thanks for the quick help yesterday, everything works again and I could not be happier with the service.",
  "Can I change the delivery address of my order? I am moving on Friday and the parcel has not left yet.",
]

function questions(): string[] {
  const predicates = [
    "Is this message spam?",
    "Is the customer satisfied?",
    "Does the customer ask for money back?",
    "Does the message name a date or a day?",
    "Is a person to answer this today?",
  ].map((question) => `\n\nQuestion: ${question}\nAnswer yes or no.`)
  const teams = "billing,shipping,technical support,sales,account,human resources,nobody"
    .split(",")
    .map(
      (team) =>
        `\n\nQuestion: Which team is to answer?\nProposed answer: ${team}\n` +
        "Is the proposed answer correct? Answer yes or no.",
    )
  const levels = "calm,annoyed,angry,furious"
    .split(",")
    .map(
      (label, level) =>
        `\n\nQuestion: How angry is the writer?\nProposed rating: ${label} (level ${level} of 0..3)\n` +
        "Is the proposed rating correct? Answer yes or no.",
    )
  return [...predicates, ...teams, ...levels]
}
