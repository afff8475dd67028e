/**
 * A `llama-server` of the same library version with its best settings, doing the same works: the same tokens, one token
 * asked for with log-probabilities, its prompt cache on and its cells shared.
 */
import type { IncomingMessage } from "node:http"
import { Agent, request } from "node:http"
import { text } from "node:stream/consumers"
import { type RunningLlamaServer, startLlamaServer } from "../test/llama-server.ts"
import type { WayOptions } from "./ways.ts"
import type { TokenWork } from "./works.ts"
import { timed } from "./works.ts"

const CONTEXT_TOKENS_MAX = 131_072
const CONTEXT_TOKENS_PER_SLOT = 4096
const BATCH_TOKENS = { cpu: 512, gpu: 2048 } as const
/** It lets 128 new connections wait: of 200 at one time some are dropped and come again after one or three seconds. */
const CONNECTIONS_MAX = 64
const agent = new Agent({ keepAlive: false, maxSockets: CONNECTIONS_MAX })
/** Enough for yes and no to be among them on a model that was trained to answer so. */
const PROBABILITIES = 10

export class LlamaServer {
  readonly #running: RunningLlamaServer

  private constructor(running: RunningLlamaServer) {
    this.#running = running
  }

  static async start(program: string, slots: number, options: WayOptions): Promise<LlamaServer> {
    return new LlamaServer(await startLlamaServer(program, flagsOf(slots, options)))
  }

  get url(): string {
    return this.#running.url
  }

  /** Milliseconds for all requests, which are sent at one time. */
  answer(requests: readonly TokenWork[]): Promise<number> {
    const { port } = this.#running
    return timed(() => Promise.all(requests.map(async (one) => await askBranches(port, one))))
  }

  async stop(): Promise<void> {
    await this.#running.kill()
  }
}

function flagsOf(slots: number, { modelFile, threads, backend, batchTokensMax }: WayOptions): string[] {
  const cpu = backend === "cpu"
  const decode = batchTokensMax ?? BATCH_TOKENS[cpu ? "cpu" : "gpu"]
  const flags = {
    "-m": modelFile,
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
async function askBranches(port: number, { prefix, branches }: TokenWork): Promise<void> {
  const prompts = branches.map((branch) => [...prefix, ...branch])
  await complete(port, prompts.slice(0, 1))
  if (prompts.length > 1) await complete(port, prompts.slice(1))
}

async function complete(port: number, prompts: readonly (readonly number[])[]): Promise<void> {
  const { status, body } = await post(port, {
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

async function post(port: number, json: unknown): Promise<{ status: number | undefined; body: string }> {
  const reply = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { "content-type": "application/json" }
    request({ host: "127.0.0.1", port, path: "/completion", method: "POST", headers, agent }, resolve)
      .on("error", reject)
      .end(JSON.stringify(json))
  })
  return { status: reply.statusCode, body: await text(reply) }
}
