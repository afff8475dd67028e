/**
 * Measures the scorer beside a `llama-server` of the same library version that does the same works, with its best
 * settings: the same tokens, one token asked for, log-probabilities with it, its prompt cache on.
 *
 * node bench/llama-server.ts --server=path [--model=file.gguf] [--library=folder] [--backend=auto|cpu|cuda]
 *   [--threads=N] [--slots=1,8,32] [--works=AD] [--rounds=N] [--batch=N]
 */
import type { ChildProcess } from "node:child_process"
import { spawn } from "node:child_process"
import { availableParallelism } from "node:os"
import { setTimeout as delay } from "node:timers/promises"
import { parseArgs } from "node:util"
import type { LlamaBackend } from "../src/engine/llama/library.ts"
import { Scorer } from "../src/engine/llama/scorer.ts"
import { defaultModelFile } from "../test/models.ts"
import type { NamedWork, TokenWork } from "./works.ts"
import { jobOf, median, timed, tokensIn, works } from "./works.ts"

const never = new AbortController().signal
const PORT = 8931
const CONTEXT_TOKENS_MAX = 131_072
const START_TRIES_MAX = 600
const START_INTERVAL_MS = 100
/** Enough for yes and no to be among them on a model that was trained to answer so. */
const PROBABILITIES = 10

const { values } = parseArgs({
  options: {
    server: { type: "string", default: "llama-server" },
    model: { type: "string", default: defaultModelFile },
    library: { type: "string" },
    backend: { type: "string", default: "auto" },
    threads: { type: "string", default: String(availableParallelism()) },
    slots: { type: "string", default: "1,8,32,64" },
    works: { type: "string", default: "AD" },
    rounds: { type: "string", default: "3" },
    batch: { type: "string", default: "2048" },
  },
})
const rounds = Number(values.rounds)

async function main(): Promise<void> {
  const chosen = Object.entries(works(1)).filter(([name]) => values.works.includes(name))
  const ours = new Map<string, number>()
  for (const [name, work] of chosen) ours.set(name, await measureScorer(name, work))
  for (const slots of values.slots.split(",").map(Number)) {
    const server = await startServer(slots)
    try {
      for (const [name, work] of chosen)
        await measureServer({ name, work, slots }, ours.get(name) ?? Number.NaN)
    } finally {
      server.kill("SIGKILL")
    }
  }
}

async function measureScorer(name: string, work: NamedWork): Promise<number> {
  const scorer = await Scorer.open({
    modelFile: values.model,
    // An unknown name finds no package, which is told.
    backend: values.backend as LlamaBackend,
    threads: Number(values.threads),
    ...(values.library === undefined ? {} : { libraryDir: values.library }),
  })
  const times: number[] = []
  let tokens = 0
  for (let round = 0; round <= rounds; round++) {
    const requests = work.make()
    tokens = tokensIn(requests)
    times.push(await timed(() => Promise.all(requests.map((request) => scorer.run(jobOf(request), never)))))
  }
  await scorer.close()
  const best = median(times.slice(1))
  console.log(
    `${name} ${work.title}\n  scorer: ${best.toFixed(1)} ms, ${((tokens / best) * 1000).toFixed(0)} tokens/s`,
  )
  return best
}

async function startServer(slots: number): Promise<ChildProcess> {
  const cpu = values.backend === "cpu"
  const tokens = Math.min(CONTEXT_TOKENS_MAX, slots * 4096)
  const flags = {
    "-m": values.model,
    "--port": PORT,
    "-t": values.threads,
    "-tb": values.threads,
    "-np": slots,
    "-c": tokens,
    "-fa": "on",
    "-b": cpu ? 2048 : Math.max(2048, Number(values.batch)),
    "-ub": cpu ? 512 : values.batch,
    "-ngl": cpu ? 0 : 99,
    ...(cpu ? { "--device": "none" } : {}),
  }
  const server = spawn(
    values.server,
    [
      ...Object.entries(flags).flatMap(([flag, value]) => [flag, String(value)]),
      "--kv-unified",
      "--no-webui",
    ],
    { stdio: ["ignore", "ignore", process.env.SERVER_LOG === undefined ? "ignore" : "inherit"] },
  )
  for (let attempt = 0; attempt < START_TRIES_MAX && server.exitCode === null; attempt++) {
    const healthy = await fetch(`http://127.0.0.1:${PORT}/health`).then(
      (reply) => reply.ok,
      () => false,
    )
    if (healthy) return server
    await delay(START_INTERVAL_MS)
  }
  server.kill("SIGKILL")
  throw new Error(`Cannot start ${values.server}: it ended with ${server.exitCode} or never became healthy`)
}

async function measureServer(
  { name, work, slots }: { readonly name: string; readonly work: NamedWork; readonly slots: number },
  ours: number,
): Promise<void> {
  const times: number[] = []
  for (let round = 0; round <= rounds; round++) {
    const requests = work.make()
    times.push(await timed(() => Promise.all(requests.map(askBranches))))
  }
  const theirs = median(times.slice(1))
  console.log(
    `  ${name} llama-server, ${slots} slots: ${theirs.toFixed(1)} ms, ${(theirs / ours).toFixed(2)} x the scorer`,
  )
}

/** The first branch goes alone, so that the others find the evidence in the cache; they follow as one request. */
async function askBranches({ prefix, branches }: TokenWork): Promise<void> {
  const prompts = branches.map((branch) => [...prefix, ...branch])
  await complete(prompts.slice(0, 1))
  if (prompts.length > 1) await complete(prompts.slice(1))
}

async function complete(prompts: readonly (readonly number[])[]): Promise<void> {
  const reply = await fetch(`http://127.0.0.1:${PORT}/completion`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      prompt: prompts.length === 1 ? prompts[0] : prompts,
      n_predict: 1,
      n_probs: PROBABILITIES,
      temperature: 0,
      cache_prompt: true,
    }),
  })
  const body = await reply.text()
  if (!reply.ok || !body.includes("tokens_evaluated")) {
    throw new Error(`Cannot measure llama-server: it answered ${reply.status} ${body.slice(0, 200)}`)
  }
}

await main()
