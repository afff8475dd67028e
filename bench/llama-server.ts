/**
 * A `llama-server` of the same library version with its best settings, doing the same works: the same tokens, one token
 * asked for with log-probabilities, its prompt cache on and its cells shared.
 */
import type { ChildProcess } from "node:child_process"
import { spawn } from "node:child_process"
import type { IncomingMessage } from "node:http"
import { Agent, request } from "node:http"
import { text } from "node:stream/consumers"
import { setTimeout as delay } from "node:timers/promises"
import type { WayOptions } from "./ways.ts"
import type { TokenWork } from "./works.ts"
import { timed } from "./works.ts"

const PORT = 8931
const CONTEXT_TOKENS_MAX = 131_072
const CONTEXT_TOKENS_PER_SLOT = 4096
const BATCH_TOKENS = { cpu: 512, gpu: 2048 } as const
const START_TRIES_MAX = 600
const START_INTERVAL_MS = 100
/** It lets 128 new connections wait: of 200 at one time some are dropped and come again after one or three seconds. */
const CONNECTIONS_MAX = 64
const agent = new Agent({ keepAlive: false, maxSockets: CONNECTIONS_MAX })
/** Enough for yes and no to be among them on a model that was trained to answer so. */
const PROBABILITIES = 10

export class LlamaServer {
  readonly #process: ChildProcess

  private constructor(process: ChildProcess) {
    this.#process = process
  }

  static async start(program: string, slots: number, options: WayOptions): Promise<LlamaServer> {
    const server = new LlamaServer(spawn(program, flagsOf(slots, options), { stdio: "ignore" }))
    if (await server.#healthy()) return server
    server.stop()
    throw new Error(
      `Cannot start ${program}: it ended with ${server.#process.exitCode} or never became healthy`,
    )
  }

  async #healthy(): Promise<boolean> {
    for (let attempt = 0; attempt < START_TRIES_MAX && this.#process.exitCode === null; attempt++) {
      const healthy = await fetch(`http://127.0.0.1:${PORT}/health`).then(
        (reply) => reply.ok,
        () => false,
      )
      if (healthy) return true
      await delay(START_INTERVAL_MS)
    }
    return false
  }

  /** Milliseconds for all requests, which are sent at one time. */
  answer(requests: readonly TokenWork[]): Promise<number> {
    return timed(() => Promise.all(requests.map(askBranches)))
  }

  stop(): void {
    this.#process.kill("SIGKILL")
  }
}

function flagsOf(slots: number, { modelFile, threads, backend, batchTokensMax }: WayOptions): string[] {
  const cpu = backend === "cpu"
  const decode = batchTokensMax ?? BATCH_TOKENS[cpu ? "cpu" : "gpu"]
  const flags = {
    "-m": modelFile,
    "--port": PORT,
    "-t": threads,
    "-tb": threads,
    "-np": slots,
    "-c": Math.min(CONTEXT_TOKENS_MAX, slots * CONTEXT_TOKENS_PER_SLOT),
    "-fa": "on",
    "-b": Math.max(2048, decode),
    "-ub": decode,
    "-ngl": cpu ? 0 : 99,
    ...(cpu ? { "--device": "none" } : {}),
  }
  const pairs = Object.entries(flags).flatMap(([flag, value]) => [flag, String(value)])
  return [...pairs, "--kv-unified", "--no-webui"]
}

/** The first branch goes alone, so that the others find the evidence in the cache; they follow as one request. */
async function askBranches({ prefix, branches }: TokenWork): Promise<void> {
  const prompts = branches.map((branch) => [...prefix, ...branch])
  await complete(prompts.slice(0, 1))
  if (prompts.length > 1) await complete(prompts.slice(1))
}

async function complete(prompts: readonly (readonly number[])[]): Promise<void> {
  const { status, body } = await post("/completion", {
    prompt: prompts.length === 1 ? prompts[0] : prompts,
    n_predict: 1,
    n_probs: PROBABILITIES,
    temperature: 0,
    cache_prompt: true,
  })
  if (status !== 200 || !body.includes("tokens_evaluated")) {
    throw new Error(`Cannot measure llama-server: it answered ${status} ${body.slice(0, 200)}`)
  }
}

async function post(path: string, json: unknown): Promise<{ status: number | undefined; body: string }> {
  const reply = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { "content-type": "application/json" }
    request({ host: "127.0.0.1", port: PORT, path, method: "POST", headers, agent }, resolve)
      .on("error", reject)
      .end(JSON.stringify(json))
  })
  return { status: reply.statusCode, body: await text(reply) }
}
