/** A worker of the test's own: node-llama-cpp behind HTTP, speaking each dialect, failing on request. */
import { type IncomingMessage, type ServerResponse, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import {
  type LlamaContextSequence,
  LlamaLogLevel,
  type LlamaModel,
  type Token,
  getLlama,
} from "node-llama-cpp"
import { defaultModelFile } from "./models.ts"

/** What goes wrong with the next requests. */
type WorkerFault =
  | "none"
  /** Answers 500. */
  | "fails"
  /** Accepts and never answers. */
  | "hangs"
  /** Breaks the connection in the middle of a stream. */
  | "dies"
  /** Sends something that is not the protocol. */
  | "garbage"
  /** Ends a stream without saying how it ended. */
  | "stops-short"
  | "no-logprobs"
  /** Leaves yes and no out of the alternatives. */
  | "few-logprobs"
  | "full"

export interface TestWorker {
  readonly url: string
  fault: WorkerFault
  /** Requests so far, with their paths. */
  readonly paths: string[]
  /** Alternatives that score requests asked for. */
  readonly tops: number[]
  /** Bodies of System One's requests. */
  readonly asked: Json[]
  close(): Promise<void>
}

type Json = Record<string, unknown>

export async function startTestWorker(): Promise<TestWorker> {
  const llama = await getLlama({
    gpu: false,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    logLevel: LlamaLogLevel.error,
    maxThreads: 1,
  })
  const model = await llama.loadModel({ modelPath: defaultModelFile })
  const context = await model.createContext({
    sequences: 1,
    contextSize: 2048,
    threads: 1,
    flashAttention: false,
  })
  const engine = new WorkerEngine(model, context.getSequence())
  const state: { fault: WorkerFault; paths: string[]; tops: number[]; asked: Json[] } = {
    fault: "none",
    paths: [],
    tops: [],
    asked: [],
  }
  const server = createServer((request, response) => {
    void serve(engine, state, request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    get fault() {
      return state.fault
    },
    set fault(fault) {
      state.fault = fault
    },
    paths: state.paths,
    tops: state.tops,
    asked: state.asked,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await llama.dispose()
    },
  }
}

/** One prompt at a time: the point is the protocol, not speed. */
class WorkerEngine {
  readonly model: LlamaModel
  readonly #sequence: LlamaContextSequence
  #last: Promise<unknown> = Promise.resolve()
  /** What the model said of a prompt, which it would say again. */
  readonly #logprobs = new Map<string, Promise<[number, number][]>>()
  readonly #written = new Map<string, Promise<string[]>>()

  constructor(model: LlamaModel, sequence: LlamaContextSequence) {
    this.model = model
    this.#sequence = sequence
  }

  async logprobs(prompt: readonly number[]): Promise<[number, number][]> {
    return await once(this.#logprobs, prompt.join(), async () => await this.#evaluate(prompt))
  }

  async *write(prompt: string, most: number): AsyncGenerator<string> {
    yield* await once(this.#written, `${most} ${prompt}`, async () => await this.#write(prompt, most))
  }

  async #evaluate(prompt: readonly number[]): Promise<[number, number][]> {
    return await this.#alone(async () => {
      await this.#sequence.clearHistory()
      const tokens = prompt as Token[]
      const all = { temperature: 1, topK: 0, topP: 1, minP: 0 }
      for await (const { probabilities } of this.#sequence.evaluateWithMetadata(
        [...tokens],
        { probabilities: true },
        all,
      ))
        return [...probabilities].map(([id, probability]) => [id, Math.log(probability)])
      return []
    })
  }

  async #write(prompt: string, most: number): Promise<string[]> {
    return await this.#alone(async () => {
      await this.#sequence.clearHistory()
      const written: string[] = []
      for await (const token of this.#sequence.evaluate(this.model.tokenize(prompt, true), {
        temperature: 0,
      })) {
        written.push(this.model.detokenize([token]))
        if (written.length >= most) break
      }
      return written
    })
  }

  async #alone<Result>(work: () => Promise<Result>): Promise<Result> {
    const mine = this.#last.then(work)
    this.#last = mine.catch(() => undefined)
    return await mine
  }
}

function once<Value>(
  known: Map<string, Promise<Value>>,
  key: string,
  make: () => Promise<Value>,
): Promise<Value> {
  const found = known.get(key) ?? make()
  known.set(key, found)
  return found
}

const mostTokens = 32

type State = {
  readonly fault: WorkerFault
  readonly paths: string[]
  readonly tops: number[]
  readonly asked: Json[]
}

async function serve(
  engine: WorkerEngine,
  state: State,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = request.url ?? ""
  state.paths.push(path)
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  const body = (chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString())) as Json
  if (state.fault === "hangs") return
  if (state.fault === "fails") return answer(response, { error: { message: "broken" } }, 500)
  if (state.fault === "full") return answer(response, { error: { message: "full" } }, 429)
  switch (path) {
    case "/health":
    case "/v1/models":
      return answer(response, {})
    case "/tokenize":
      return answer(response, { tokens: tokenise(engine.model, body) })
    case "/apply-template":
      return answer(response, { prompt: promptOf(body["messages"] as { content: string }[]) })
    case "/v1/chat/completions":
      return await chat(engine, state, body, response)
    case "/v1/embeddings":
      return answer(
        response,
        state.fault === "garbage" ? { data: 1 } : embeddings(body["input"] as unknown[]),
      )
    case "/completion":
    case "/v1/completions":
    case "/generate":
      return answer(response, await score(engine, state, path, body))
    case "/native/v1/models":
      return answer(response, {})
    case "/native/v1/systemone":
      state.asked.push(body)
      return answer(response, systemone(body, state.fault))
    default:
      return answer(response, { error: { message: "no such path" } }, 404)
  }
}

function answer(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
}

/** llama-server parses special tokens only when asked; the others always do. */
function tokenise(model: LlamaModel, body: Json): readonly number[] {
  if (typeof body["content"] === "string")
    return model.tokenize(body["content"], body["parse_special"] === true)
  return model.tokenize(String(body["prompt"]), true)
}

const promptOf = (messages: readonly { readonly content: string }[]): string =>
  `<|im_start|>user\n${messages.map(({ content }) => content).join("\n")}<|im_end|>\n<|im_start|>assistant\n`

async function chat(engine: WorkerEngine, state: State, body: Json, response: ServerResponse): Promise<void> {
  const prompt = promptOf(body["messages"] as { content: string }[])
  // A model that never ends would be waited for.
  const wanted = Number(body["max_tokens"] ?? body["max_completion_tokens"] ?? 8)
  // It streams, asked or not: who does not expect that reads none of it.
  const most = body["stream"] === true ? Math.min(wanted, mostTokens) : 1
  response.writeHead(200, { "content-type": "text/event-stream" })
  const send = (value: unknown): void => {
    const text = `data: ${JSON.stringify(value)}\r\n\r\n`
    // In pieces that break lines and characters, as networks do.
    for (let start = 0; start < text.length; start += 7) response.write(text.slice(start, start + 7))
  }
  response.write(": hello\n\n")
  if (Array.isArray(body["tools"])) {
    send(
      delta({
        tool_calls: [
          { index: 0, id: "x", type: "function", function: { name: "get_weather", arguments: '{"ci' } },
        ],
      }),
    )
    send(delta({ tool_calls: [{ index: 0, function: { arguments: 'ty":"Oslo"}' } }] }))
    send({ choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }], usage: usageOf(9, 5) })
    return void response.end("data: [DONE]\n\n")
  }
  let written = 0
  send(delta({ role: "assistant", reasoning_content: "hm" }))
  for await (const piece of engine.write(prompt, most)) {
    send(delta({ content: piece }))
    written++
    if (state.fault === "dies") {
      // What it wrote before has left.
      await new Promise<void>((resolve) => response.write("\r\n", () => resolve()))
      return void response.destroy()
    }
    if (state.fault === "garbage") return void response.end("data: {broken\n\n")
  }
  if (state.fault === "stops-short") return void response.end()
  send({ choices: [{ index: 0, delta: {}, finish_reason: written >= most ? "length" : "stop" }] })
  send({ choices: [], usage: usageOf(engine.model.tokenize(prompt, true).length, written) })
  response.end("data: [DONE]\n\n")
}

const delta = (value: Json): Json => ({ choices: [{ index: 0, delta: value, finish_reason: null }] })
const usageOf = (prompt_tokens: number, completion_tokens: number): Json => ({
  prompt_tokens,
  completion_tokens,
  prompt_tokens_details: { cached_tokens: 2 },
})

function embeddings(input: readonly unknown[]): Json {
  return {
    data: input.map((_, index) => ({ index, embedding: [3, 4, index] })),
    usage: { prompt_tokens: 5 * input.length },
  }
}

async function score(engine: WorkerEngine, state: State, path: string, body: Json): Promise<Json> {
  if (state.fault === "garbage") return { nonsense: true }
  const prompt = (body["prompt"] ?? body["input_ids"]) as number[]
  const all = await engine.logprobs(prompt)
  const top = Number(body["n_probs"] ?? body["logprobs"] ?? 0)
  state.tops.push(top)
  const wanted = new Set((body["token_ids_logprob"] ?? body["logprob_token_ids"] ?? []) as number[])
  const shown = state.fault === "few-logprobs" ? all.slice(-top) : all.slice(0, top)
  if (state.fault === "no-logprobs") return { choices: [{}], meta_info: {}, content: "yes" }
  if (path === "/generate")
    return {
      meta_info: {
        output_token_ids_logprobs: [
          state.fault === "few-logprobs"
            ? []
            : all.filter(([id]) => wanted.has(id)).map(([id, logprob]) => [logprob, id, null]),
        ],
      },
    }
  if (path === "/completion")
    return { completion_probabilities: [{ top_logprobs: shown.map(([id, logprob]) => ({ id, logprob })) }] }
  return {
    choices: [
      {
        logprobs: {
          top_logprobs: [Object.fromEntries(shown.map(([id, logprob]) => [`token_id:${id}`, logprob]))],
        },
      },
    ],
  }
}

/** Yes at 0.75; of options and levels the last has half, and the others share the rest. */
function systemone(body: Json, fault: WorkerFault): Json {
  if (fault === "garbage") return { nonsense: true }
  const questions = Object.entries(body["questions"] as Record<string, { type: string; criteria?: object }>)
  const answerOf = ({ type, criteria = {} }: { type: string; criteria?: object }): Json => {
    if (fault === "no-logprobs") return { type }
    if (type === "noul") return { type, noul: 0.75 }
    const names = Object.keys(criteria)
    const share = 0.5 / (names.length - 1)
    const probabilities = names.map((name, index) => [name, index === names.length - 1 ? 0.5 : share])
    return { type, probabilities: Object.fromEntries(probabilities) as Json }
  }
  return {
    answers: Object.fromEntries(questions.map(([name, question]) => [name, answerOf(question)])),
    usage: { input_tokens: 42, output_tokens: 0 },
  }
}
