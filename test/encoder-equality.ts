/** Labelled rows of several kinds, for tests that answers do not depend on who else asks or on the order of options. */
import type { Branch } from "../src/engine/branch.ts"
import { admitAny, type ScoreEngine, type ScoreWork } from "../src/engine/engine.ts"
import { readChoice } from "../src/scoring/answers.ts"

const never = new AbortController().signal

const texts = [
  "My parcel should have arrived last Tuesday and nobody answers my mails.",
  "I was charged twice for the same month, please send one payment back.",
  "The lamp flickers since the update and the app says offline.",
  "Thank you so much, the new charger works and came a day early!",
  "Can I change my delivery address before the order ships?",
  "Your driver was rude and left the box in the rain. I am furious.",
] as const
const topics = [
  "delivery",
  "billing",
  "technical problem",
  "praise",
  "address change",
  "complaint about staff",
  "account access",
  "product question",
] as const

/** A small repeatable generator (Park and Miller). */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647
}

function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  return items
    .map((item) => ({ item, key: random() }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ item }) => item)
}

const choose = (values: readonly string[]): Branch[] =>
  values.map((value) => ({ kind: "choice", question: "What is the message about?", value, description: "" }))

/** A request of a random size: a few sentences to a few pages, one question to a hundred. */
export function randomWork(random: () => number, organizationId: string): ScoreWork {
  const sentences = random() < 0.15 ? 60 : Math.ceil(random() * 5)
  const evidence = Array.from({ length: sentences }, () => texts[Math.floor(random() * texts.length)]).join(
    " ",
  )
  const questions = random() < 0.1 ? 60 : Math.ceil(random() * 4)
  const branches: Branch[] = Array.from({ length: questions }, (_, index) => ({
    kind: "predicate",
    question: `Is message ${index} about ${topics[index % topics.length]}?`,
    yesMeans: "",
    noMeans: "",
  }))
  return {
    organizationId,
    evidence,
    branches: [...branches, ...choose(topics.slice(0, 2 + (questions % 6)))],
  }
}

type Scorer = Pick<ScoreEngine, "score">

export const score = async (engine: Scorer, work: ScoreWork): Promise<Float64Array> =>
  (await engine.score(work, { signal: never, admit: admitAny })).margins

const yes = (margin: number): number => 1 / (1 + Math.exp(-margin))

/** The largest difference of a probability between requests that run alone and the same requests all at once. */
export async function differenceAmidOthers(engine: ScoreEngine, requests: number): Promise<number> {
  return await differenceOf(engine, engine, requests)
}

/** The same between requests that run alone on one engine and all at once on another. */
export async function differenceOf(one: Scorer, other: Scorer, requests: number): Promise<number> {
  const random = randomFrom(11)
  const works = Array.from({ length: requests }, (_, index) => randomWork(random, `org${index % 4}`))
  const alone: Float64Array[] = []
  for (const work of works) alone.push(await score(one, work))
  const amid = await Promise.all(works.map((work) => score(other, work)))
  return Math.max(
    ...alone.flatMap((margins, request) =>
      [...margins].map((margin, branch) =>
        Math.abs(yes(margin) - yes(amid[request]?.[branch] ?? Number.NaN)),
      ),
    ),
  )
}

/** How often another order of the options changes the answer. */
export async function flipsByOrder(engine: ScoreEngine, shuffles: number): Promise<number> {
  const random = randomFrom(7)
  const winner = async (evidence: string, values: readonly string[]): Promise<string | undefined> => {
    const margins = await score(engine, { organizationId: "order", evidence, branches: choose(values) })
    return values[readChoice(margins).winner]
  }
  const first = await Promise.all(texts.map((text) => winner(text, topics)))
  const outcomes = await Promise.all(
    Array.from({ length: shuffles }, async (_, index) => {
      const at = index % texts.length
      return (await winner(texts[at] ?? "", shuffled(topics, random))) === first[at]
    }),
  )
  return outcomes.filter((isSame) => !isSame).length
}
