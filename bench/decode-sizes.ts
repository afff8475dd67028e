/**
 * Measures how fast and how equal the scorer is with decodes of different sizes, on a processor or on a GPU.
 *
 * node bench/decode-sizes.ts [--model=file.gguf] [--library=folder] [--backend=auto|cpu|cuda] [--threads=N]
 *   [--sizes=512,1024] [--works=ABCDE] [--rounds=N] [--answers=file.json]
 */
import { writeFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { parseArgs } from "node:util"
import { findAnswerTokens } from "../src/engine/llama/answer-tokens.ts"
import { LlamaContext } from "../src/engine/llama/binding.ts"
import { readGguf } from "../src/engine/llama/gguf.ts"
import type { LlamaBackend } from "../src/engine/llama/library.ts"
import { Scorer } from "../src/engine/llama/scorer.ts"
import { defaultModelFile } from "../test/models.ts"
import { branchesOf, evaluatePlainly, scoreInTurn, scoreNaively } from "../test/naive-scorer.ts"
import type { NamedWork, TokenWork } from "./works.ts"
import { jobOf, median, timed, tokensIn, works } from "./works.ts"

const never = new AbortController().signal
/** Whole prompts per branch are slow and all alike: some are run and the time is scaled. */
const NAIVE_BRANCHES = 4
/** Requests of the crowd that are run one after the other, scaled likewise. */
const SINGLE_REQUESTS = 50

const { values } = parseArgs({
  options: {
    model: { type: "string", default: defaultModelFile },
    library: { type: "string" },
    backend: { type: "string", default: "auto" },
    threads: { type: "string", default: String(availableParallelism()) },
    sizes: { type: "string", default: "512,1024,2048,4096" },
    works: { type: "string", default: "ABCDE" },
    rounds: { type: "string", default: "5" },
    answers: { type: "string" },
  },
})

interface Bench {
  readonly scorer: Scorer
  /** A context of its own for the simpler ways. */
  readonly plain: LlamaContext
}

const answers: Record<string, number[]> = {}
async function measure(batchTokensMax: number): Promise<void> {
  const threads = Number(values.threads)
  const scorer = await Scorer.open({
    modelFile: values.model,
    // An unknown name finds no package, which is told.
    backend: values.backend as LlamaBackend,
    threads,
    batchTokensMax,
    ...(values.library === undefined ? {} : { libraryDir: values.library }),
  })
  const plain = await LlamaContext.create(scorer.model, findAnswerTokens(scorer.model), {
    threads,
    memoryBytes: 0,
    batchTokensMax,
    contextTokensMax: 4096,
    keyValueWidth: (await readGguf(values.model)).keyValueWidth,
  })
  const { parameterCount, quantization } = scorer.facts
  const place = scorer.model.onGpu ? "GPU" : `${threads} threads`
  console.log(`\n${parameterCount} parameters, ${quantization}, ${place}, decodes of ${batchTokensMax}`)
  const bench = { scorer, plain }
  await compareAnswers(bench, batchTokensMax)
  for (const [name, work] of Object.entries(works(batchTokensMax))) {
    if (values.works.includes(name)) await compareWays(bench, name, work)
  }
  plain.close()
  await scorer.close()
}

/** Real texts, because random tokens leave a trained model undecided and rounding without effect. */
async function compareAnswers({ scorer, plain }: Bench, size: number): Promise<void> {
  const jobs = await Promise.all(
    EVIDENCE.map((evidence) =>
      scorer.prepare({ organizationId: "equality", evidence, branches: questions() }, never),
    ),
  )
  const together = await Promise.all(jobs.map((job) => scorer.run(job, never)))
  const [first] = jobs
  const alone =
    first === undefined ? undefined : await scorer.run({ ...first, organizationId: "alone" }, never)
  let furthest = 0
  let flips = 0
  answers[size] = []
  for (const [index, job] of jobs.entries()) {
    const naive = await scoreNaively(plain, job.prefix, branchesOf(job.branches))
    for (const [branch, difference] of naive.entries()) {
      const [expected, found] = [sigmoid(difference), sigmoid(together[index]?.[branch] ?? Number.NaN)]
      furthest = Math.max(furthest, Math.abs(found - expected))
      if (found > 0.5 !== expected > 0.5) flips++
      answers[size].push(found)
    }
  }
  const moved = Math.max(
    ...(alone ?? []).map((difference, branch) =>
      Math.abs(sigmoid(difference) - sigmoid(together[0]?.[branch] ?? Number.NaN)),
    ),
  )
  console.log(
    `  against naive, ${answers[size].length} branches: max |dp| ${furthest.toExponential(1)}, ${flips} flips; ` +
      `alone against amid others: ${moved.toExponential(1)}`,
  )
}

async function compareWays({ scorer, plain }: Bench, name: string, work: NamedWork): Promise<void> {
  const times = { shared: [] as number[], again: [] as number[], plain: [] as number[] }
  let tokens = 0
  await runAll(scorer, work.make())
  const before = scorer.stats()
  for (let round = 0; round < Number(values.rounds); round++) {
    const requests = work.make()
    tokens = tokensIn(requests)
    times.shared.push(await timed(() => runAll(scorer, requests)))
    times.again.push(await timed(() => runAll(scorer, requests)))
    if (name === "A") {
      const whole = requests.flatMap(({ prefix, branches }) =>
        [prefix, ...branches].flatMap((part) => [...part]),
      )
      times.plain.push(await timed(() => evaluatePlainly(plain, whole)))
    }
  }
  const after = scorer.stats()
  const decodes = (after.decodes - before.decodes) / (2 * Number(values.rounds))
  const shared = median(times.shared)
  console.log(
    `  ${name} ${work.title}: ${shared.toFixed(1)} ms, ${((tokens / shared) * 1000).toFixed(0)} tokens/s; ` +
      `again ${median(times.again).toFixed(1)} ms; ${decodes.toFixed(1)} decodes on average`,
  )
  if (name === "A") await compareSimpler(plain, work.make(), { shared, plain: median(times.plain) })
  if (name === "D") await compareSingle(scorer, work, shared)
}

const runAll = (scorer: Scorer, requests: readonly TokenWork[]) =>
  Promise.all(requests.map((request) => scorer.run(jobOf(request), never)))

async function compareSimpler(
  plain: LlamaContext,
  requests: readonly TokenWork[],
  known: { readonly shared: number; readonly plain: number },
): Promise<void> {
  for (const { prefix, branches } of requests) {
    const inTurn = await timed(() => scoreInTurn(plain, prefix, branches))
    const some = await timed(() => scoreNaively(plain, prefix, branches.slice(0, NAIVE_BRANCHES)))
    const naive = (some * branches.length) / NAIVE_BRANCHES
    const beside = (ms: number) => `${ms.toFixed(1)} ms (${(ms / known.shared).toFixed(2)} x)`
    console.log(`    plain ${beside(known.plain)}, in turn ${beside(inTurn)}, naive ${beside(naive)}`)
  }
}

async function compareSingle(scorer: Scorer, work: NamedWork, together: number): Promise<void> {
  const requests = work.make()
  const some = await timed(async () => {
    for (const request of requests.slice(0, SINGLE_REQUESTS)) await scorer.run(jobOf(request), never)
  })
  const single = (some * requests.length) / SINGLE_REQUESTS
  console.log(`    one after the other ${single.toFixed(1)} ms (${(single / together).toFixed(2)} x)`)
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

for (const size of values.sizes.split(",").map(Number)) await measure(size)
if (values.answers !== undefined) writeFileSync(values.answers, JSON.stringify(answers))
