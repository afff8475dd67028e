/**
 * Measures the embedded scorer against the simpler ways of doing the same work, in one process on one machine.
 *
 * node bench/scorer.ts [--model=default|qwen05-q8] [--part=ways|stems|prefixes|crowd] [--threads=N] [--rounds=N]
 */
import { availableParallelism } from "node:os"
import { parseArgs } from "node:util"
import { findAnswerTokens } from "../src/engine/llama/answer-tokens.ts"
import { LlamaContext } from "../src/engine/llama/binding.ts"
import { readGguf } from "../src/engine/llama/gguf.ts"
import type { ScoreJob } from "../src/engine/llama/scheduler.ts"
import { Scorer } from "../src/engine/llama/scorer.ts"
import type { TokenTrie } from "../src/engine/llama/trie.ts"
import { buildTrie } from "../src/engine/llama/trie.ts"
import { defaultModelFile, randomModel } from "../test/models.ts"
import { branchesOf, evaluatePlainly, scoreInTurn, scoreNaively } from "../test/naive-scorer.ts"

const PREFIX_TOKENS = 512
const BRANCHES = 64
const BRANCH_TOKENS = 40
/** Whole prompts per branch are slow and all alike: some are run and the time is scaled. */
const NAIVE_BRANCHES = 4

const never = new AbortController().signal

const parts = {
  ways: compareWays,
  stems: compareStems,
  prefixes: comparePrefixes,
  crowd: compareCrowd,
} as const

interface Subject {
  readonly file: () => string
  /** Rounds are interleaved and the median is reported: other work on the machine disturbs all ways alike. */
  readonly rounds: number
  readonly parts: readonly (keyof typeof parts)[]
}

const subjects: Readonly<Record<string, Subject>> = {
  default: { file: () => defaultModelFile, rounds: 5, parts: ["ways", "stems", "prefixes", "crowd"] },
  "qwen05-q8": { file: () => randomModel("qwen05-q8"), rounds: 3, parts: ["ways"] },
}

interface Bench {
  readonly scorer: Scorer
  readonly plain: LlamaContext
  readonly rounds: number
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      model: { type: "string" },
      part: { type: "string" },
      threads: { type: "string", default: String(availableParallelism()) },
      rounds: { type: "string" },
    },
  })
  for (const [name, subject] of Object.entries(subjects)) {
    if (values.model !== undefined && values.model !== name) continue
    const threads = Number(values.threads)
    const scorer = await Scorer.open({ modelFile: subject.file(), threads })
    const plain = await LlamaContext.create(scorer.model, findAnswerTokens(scorer.model), {
      threads,
      memoryBytes: 0,
      contextTokensMax: 4096,
      keyValueWidth: (await readGguf(subject.file())).keyValueWidth,
    })
    const { parameterCount, quantization } = scorer.facts
    console.log(`\n${name}: ${parameterCount} parameters, ${quantization}, ${threads} threads`)
    for (const part of subject.parts) {
      if (values.part !== undefined && values.part !== part) continue
      await parts[part]({ scorer, plain, rounds: Number(values.rounds ?? subject.rounds) })
    }
    plain.close()
    await scorer.close()
  }
}

async function compareWays({ scorer, plain, rounds }: Bench): Promise<void> {
  const random = randomTokens(1)
  const times: Record<string, number[]> = { naive: [], "in turn": [], shared: [], plain: [] }
  for (let round = 0; round < rounds; round++) {
    const prefix = random(PREFIX_TOKENS)
    const branches = Array.from({ length: BRANCHES }, () => random(BRANCH_TOKENS))
    const job = jobOf(prefix, buildTrie(branches))
    times.shared?.push(await timed(() => scorer.run(job, never)))
    times.plain?.push(
      await timed(() =>
        evaluatePlainly(
          plain,
          [prefix, ...branches].flatMap((part) => [...part]),
        ),
      ),
    )
    times["in turn"]?.push(await timed(() => scoreInTurn(plain, prefix, branches)))
    const some = await timed(() => scoreNaively(plain, prefix, branches.slice(0, NAIVE_BRANCHES)))
    times.naive?.push((some * BRANCHES) / NAIVE_BRANCHES)
  }
  const shared = median(times.shared ?? [])
  const tokens = PREFIX_TOKENS + BRANCHES * BRANCH_TOKENS
  table(
    `prefix of ${PREFIX_TOKENS} tokens, ${BRANCHES} different branches of ${BRANCH_TOKENS} (naive: ${NAIVE_BRANCHES} run, scaled)`,
    Object.entries(times).map(([way, all]) => [
      way,
      median(all),
      (tokens / median(all)) * 1000,
      `${(median(all) / shared).toFixed(2)} x shared`,
    ]),
  )
}

async function compareStems({ scorer, rounds }: Bench): Promise<void> {
  const options = Array.from(
    { length: 77 },
    (_, index) => `${WORDS[index % WORDS.length]} ${WORDS[Math.floor(index / WORDS.length)]}`,
  )
  const work = {
    organizationId: "bench",
    evidence: sentence(155),
    branches: options.map(
      (value) =>
        "\n\nQuestion: Which of the listed intents does the customer's message express most directly, judged by what " +
        `was asked and not by the words that were used?\nProposed answer: ${value}\n` +
        "Is the proposed answer correct? Answer yes or no.",
    ),
  }
  const job = await scorer.prepare(work, never)
  const apart = { ...job, branches: unsharedTrie(branchesOf(job.branches)) }
  const times = { shared: [] as number[], apart: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    times.shared.push(await timed(() => scorer.run({ ...job, organizationId: `shared${round}` }, never)))
    times.apart.push(await timed(() => scorer.run({ ...apart, organizationId: `apart${round}` }, never)))
  }
  const tokens = job.inputTokens
  table(
    `evidence of ${job.prefix.length} tokens, one choice of 77 options (${tokens} tokens in, ${job.prefix.length + job.branches.tokens.length} after sharing)`,
    [
      ["stems evaluated once", median(times.shared), (tokens / median(times.shared)) * 1000, ""],
      [
        "every branch whole",
        median(times.apart),
        (tokens / median(times.apart)) * 1000,
        ratio(times.apart, times.shared),
      ],
    ],
  )
}

async function comparePrefixes({ scorer, rounds }: Bench): Promise<void> {
  const times = { first: [] as number[], second: [] as number[] }
  let prefixTokens = 0
  for (let round = 0; round < Math.min(rounds, 3); round++) {
    const questions = Array.from(
      { length: 10 },
      (_, index) => `\n\nQuestion: Does it name ${WORDS[index]}?\nAnswer yes or no.`,
    )
    const evidence = `${round}. ${sentence(3100)}`
    const job = await scorer.prepare({ organizationId: "bench", evidence, branches: questions }, never)
    prefixTokens = job.prefix.length
    times.first.push(await timed(() => scorer.run(job, never)))
    times.second.push(await timed(() => scorer.run(job, never)))
  }
  table(`evidence of ${prefixTokens} tokens, 10 questions, asked twice`, [
    ["first", median(times.first), 0, ratio(times.first, times.second)],
    ["second", median(times.second), 0, ""],
  ])
}

async function compareCrowd({ scorer, rounds }: Bench): Promise<void> {
  const REQUESTS = 200
  const prepare = (evidence: string, index: number) =>
    scorer.prepare(
      {
        organizationId: "crowd",
        evidence,
        branches: [
          `\n\nQuestion: Does number ${index} name ${WORDS[index % WORDS.length]}?\nAnswer yes or no.`,
        ],
      },
      never,
    )
  const cases = [
    ["each about its own evidence", (index: number, run: string) => `${run} ${index}. ${sentence(40)}`],
    ["all about one evidence", (_: number, run: string) => `${run}. ${sentence(40)}`],
  ] as const
  for (const [name, evidenceOf] of cases) {
    const times = { together: [] as number[], single: [] as number[] }
    for (let round = 0; round < Math.min(rounds, 2); round++) {
      const jobs = (run: string) =>
        Promise.all(
          Array.from({ length: REQUESTS }, (_, index) => prepare(evidenceOf(index, `${run}${round}`), index)),
        )
      const together = await jobs("together")
      times.together.push(await timed(() => Promise.all(together.map((job) => scorer.run(job, never)))))
      const single = await jobs("single")
      times.single.push(
        await timed(async () => {
          for (const job of single)
            await scorer.run({ ...job, organizationId: `single${job.branches.tokens.join()}` }, never)
        }),
      )
    }
    table(`${REQUESTS} requests of one question, ${name}`, [
      ["at one time", median(times.together), (REQUESTS / median(times.together)) * 1000, ""],
      [
        "one after the other",
        median(times.single),
        (REQUESTS / median(times.single)) * 1000,
        ratio(times.single, times.together),
      ],
    ])
  }
}

const WORDS =
  "card refund transfer limit account login password fee rate delay support branch loan passport".split(" ")

function sentence(words: number): string {
  return Array.from({ length: words }, (_, index) => WORDS[(index * index + index) % WORDS.length]).join(" ")
}

function randomTokens(seed: number): (length: number) => Int32Array {
  let state = seed
  return (length) =>
    Int32Array.from({ length }, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
      return 3 + ((state >>> 8) % 250)
    })
}

const jobOf = (prefix: Int32Array, branches: TokenTrie): ScoreJob => ({
  organizationId: "bench",
  prefix,
  branches,
})

/** A tree whose branches share nothing, for comparison. */
function unsharedTrie(branches: readonly Int32Array[]): TokenTrie {
  const ends: { node: number; branches: number[] }[] = []
  let nodes = 0
  for (const [index, branch] of branches.entries()) {
    nodes += branch.length
    ends.push({ node: nodes - 1, branches: [index] })
  }
  return {
    tokens: Int32Array.from(branches.flatMap((branch) => [...branch])),
    depths: Int32Array.from(branches.flatMap((branch) => [...branch.keys()].map((index) => index + 1))),
    ends,
    branchCount: branches.length,
    depthMax: Math.max(...branches.map((branch) => branch.length)),
  }
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await act()
  return performance.now() - start
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

function ratio(slower: readonly number[], faster: readonly number[]): string {
  return `${(median(slower) / median(faster)).toFixed(2)} x`
}

function table(
  title: string,
  rows: readonly (readonly [way: string, ms: number, perSecond: number, note: string])[],
): void {
  console.log(`\n  ${title}`)
  for (const [way, ms, perSecond, note] of rows) {
    const speed = perSecond === 0 ? "" : `${perSecond.toFixed(0)}/s`
    console.log(`    ${way.padEnd(22)}${ms.toFixed(0).padStart(8)} ms ${speed.padStart(8)}  ${note}`)
  }
}

await main()
