/** The works that scorers are compared on, as random tokens of exact counts, so that every engine gets the same. */
import type { ScoreJob } from "../src/engine/llama/scheduler.ts"
import { buildTrie } from "../src/engine/llama/trie.ts"

/** One request: evidence and the branches that follow it. */
export interface TokenWork {
  readonly prefix: Int32Array
  readonly branches: readonly Int32Array[]
}

export interface NamedWork {
  readonly title: string
  /** Requests that arrive at the same time; fresh tokens on every call, so that no cache knows them. */
  readonly make: () => TokenWork[]
}

const QUESTION_TOKENS = 40
/** What every option of a choice shares before and after its own words. */
const STEM_TOKENS = 45
const OPTION_TOKENS = 3
const TAIL_TOKENS = 14

export type WorkName = "A" | "B" | "C" | "D" | "E"

export function works(seed: number): Readonly<Record<WorkName, NamedWork>> {
  const random = randomTokens(seed)
  const questions = (count: number) => Array.from({ length: count }, () => random(QUESTION_TOKENS))
  const choice = (options: number) => {
    const [stem, tail] = [random(STEM_TOKENS), random(TAIL_TOKENS)]
    return Array.from({ length: options }, () => joined(stem, random(OPTION_TOKENS), tail))
  }
  return {
    A: {
      title: "512 tokens of evidence, 64 predicates of 40",
      make: () => [{ prefix: random(512), branches: questions(64) }],
    },
    B: {
      title: "200 tokens of evidence, one choice of 77 options",
      make: () => [{ prefix: random(200), branches: choice(77) }],
    },
    C: {
      title: "4000 tokens of evidence, 4 predicates, 3 choices of 5 and 3 scores of 5",
      make: () => [
        {
          prefix: random(4000),
          branches: [...questions(4), ...Array.from({ length: 6 }, () => choice(5)).flat()],
        },
      ],
    },
    D: {
      title: "200 requests at one time, each of 60 tokens and one predicate of 40",
      make: () => Array.from({ length: 200 }, () => ({ prefix: random(60), branches: questions(1) })),
    },
    E: {
      title: "512 tokens of evidence, 4096 predicates of 40",
      make: () => [{ prefix: random(512), branches: questions(4096) }],
    },
  }
}

export const jobOf = ({ prefix, branches }: TokenWork): ScoreJob => ({
  organizationId: "bench",
  prefix,
  branches: buildTrie(branches),
})

/** As a caller counts them: the evidence once, every branch whole. */
export function tokensIn(requests: readonly TokenWork[]): number {
  let tokens = 0
  for (const { prefix, branches } of requests) {
    tokens += prefix.length
    for (const branch of branches) tokens += branch.length
  }
  return tokens
}

export async function timed(act: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await act()
  return performance.now() - start
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** Ordinary tokens of any vocabulary: the first few are often special. */
export function randomTokens(seed: number): (length: number) => Int32Array {
  let state = seed
  return (length) =>
    Int32Array.from({ length }, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
      return 3 + ((state >>> 8) % 250)
    })
}

function joined(...parts: readonly Int32Array[]): Int32Array {
  return Int32Array.from(parts.flatMap((part) => [...part]))
}
