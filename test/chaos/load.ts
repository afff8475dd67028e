/** Steady traffic of decisions and streams through a load balancer that only looks at /readyz, with every answer checked. */
import { setTimeout as wait } from "node:timers/promises"
import { bootstrapKey } from "../server.ts"
import {
  type Gateway,
  inputTokenTicks,
  judgeModel,
  outputTokenTicks,
  requestTimeoutMs,
  writerModel,
} from "./cluster.ts"

export interface Tally {
  requests: number
  successes: number
  /** Answered with an error of the contract, or ended by an error event. */
  cleanErrors: number
  /** Not over by the deadline. */
  hangs: number
  /** Answers that differ from what the model answers, or that no client could read. */
  wrong: number
  codes: Record<string, number>
  /** Successes of this phase that ran in each region. */
  regions: Record<string, number>
  lastFailureMs: number
}

/** What clients know of their requests, by request id: the books are held against it. */
export interface Receipts {
  /** Ticks by what the whole answer said was used. */
  readonly answered: Map<string, bigint>
  /** Pieces of text that came before the request failed: at least so many tokens were generated. */
  readonly failed: Map<string, number>
}

const warmUpsMax = 8
const probeEveryMs = 100
/** Beyond the server's own deadline, for the answer to travel on a busy machine. */
const slackMs = 120_000
const thinkMsDefault = 10
/** Random F32 weights: shared batches differ by rounding only. */
const toleranceMax = 1e-3
const streamTokensMax = 16
const texts = ["The parcel is late.", "I love it.", "Where is my invoice?", "The box was crushed, again."]

const newTally = (): Tally => ({
  requests: 0,
  successes: 0,
  cleanErrors: 0,
  hangs: 0,
  wrong: 0,
  codes: {},
  regions: {},
  lastFailureMs: 0,
})

export class Load {
  readonly receipts: Receipts = { answered: new Map(), failed: new Map() }
  readonly #gateways: readonly Gateway[]
  readonly #regions: readonly string[]
  readonly #thinkMs: number
  readonly #ready = new Set<Gateway>()
  readonly #stop = new AbortController()
  readonly #expected = new Map<string, readonly number[]>()
  /** How many requests of each client have ended. */
  readonly #ended: number[] = []
  #tally = newTally()
  #turn = 0
  #sent = 0
  #running: Promise<unknown> = Promise.resolve()

  constructor(gateways: readonly Gateway[], regions: readonly string[], thinkMs: number = thinkMsDefault) {
    this.#thinkMs = thinkMs
    this.#gateways = gateways
    this.#regions = regions
  }

  /** Uses every worker once, learns what the right answers are from an untroubled cluster, then begins. */
  async start(decisions: number, streams: number): Promise<void> {
    for (const gateway of this.#gateways) await this.#probe(gateway)
    for (const region of this.#regions) {
      await untilAnswered(async () => await this.#ask(texts[0] ?? "", region))
      await untilAnswered(async () => await this.#stream(texts[0] ?? "", region))
    }
    for (const text of texts) this.#expected.set(text, (await this.#ask(text)).answers)
    const probing = this.#gateways.map(async (gateway) => await this.#keepProbing(gateway))
    const clients = [
      ...Array.from(
        { length: decisions },
        async (_, index) => await this.#repeat(index, async (text) => await this.#decide(text)),
      ),
      ...Array.from(
        { length: streams },
        async (_, index) => await this.#repeat(index, async (text) => await this.#stream(text)),
      ),
    ]
    this.#running = Promise.all([...probing, ...clients])
  }

  /** Ends a phase and begins the next. */
  take(): Tally {
    const tally = this.#tally
    this.#tally = newTally()
    return tally
  }

  /** Resolves when every request that is under way now has ended, each by its deadline at the latest. */
  async untilEnded(): Promise<void> {
    const before = [...this.#ended]
    while (before.some((count, client) => this.#ended[client] === count)) await wait(probeEveryMs)
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
  }

  async #repeat(first: number, request: (text: string) => Promise<void>): Promise<void> {
    const client = this.#ended.push(0) - 1
    for (let turn = first; !this.#stop.signal.aborted; turn++) {
      const failure = await request(texts[turn % texts.length] ?? "").then(
        () => null,
        (error: unknown) => ({ error }),
      )
      // A request belongs to the phase in which it ends.
      this.#tally.requests++
      if (failure) this.#note(this.#tally, failure.error)
      else this.#tally.successes++
      this.#ended[client] = (this.#ended[client] ?? 0) + 1
      await wait(this.#thinkMs)
    }
  }

  #note(tally: Tally, error: unknown): void {
    tally.lastFailureMs = performance.now()
    const code =
      error instanceof CleanError
        ? error.message
        : error instanceof WrongAnswer
          ? `wrong: ${error.message}`
          : "hang"
    if (error instanceof CleanError) tally.cleanErrors++
    else if (error instanceof WrongAnswer) tally.wrong++
    else if (error instanceof DOMException && error.name === "TimeoutError") tally.hangs++
    else {
      // A broken connection is no answer at all.
      tally.wrong++
      tally.codes[String(error)] = (tally.codes[String(error)] ?? 0) + 1
      return
    }
    tally.codes[code] = (tally.codes[code] ?? 0) + 1
  }

  async #decide(text: string): Promise<void> {
    const { answers, region } = await this.#ask(text)
    this.#tally.regions[region] = (this.#tally.regions[region] ?? 0) + 1
    const expected = this.#expected.get(text) ?? []
    const isRight = answers.every(
      (value, index) => Math.abs(value - (expected[index] ?? NaN)) <= toleranceMax,
    )
    if (!isRight) throw new WrongAnswer(`${answers.join(",")} is not ${expected.join(",")}`)
  }

  async #ask(text: string, region?: string): Promise<{ answers: number[]; region: string }> {
    const id = this.#newId()
    const response = await this.#send(
      id,
      "/v1/decisions",
      {
        model: judgeModel,
        input: text,
        questions: [
          { type: "predicate", name: "late", instructions: "Is something late?" },
          {
            type: "choice",
            name: "topic",
            instructions: "What is it about?",
            choices: [{ value: "delivery" }, { value: "praise" }, { value: "billing" }],
          },
        ],
      },
      region,
    )
    const body = await this.#reading(id, async () => (await response.json()) as DecisionBody)
    const [predicate, choice] = body.answers
    const answers = [
      predicate?.probability ?? NaN,
      ...(choice?.probabilities ?? []).map(({ probability }) => probability),
    ]
    this.receipts.answered.set(id, BigInt(body.usage.input_tokens) * inputTokenTicks)
    if (answers.length !== 4) throw new WrongAnswer(`unexpected shape ${JSON.stringify(body).slice(0, 400)}`)
    return { answers, region: response.headers.get("x-umpire-region") ?? "none" }
  }

  async #stream(text: string, region?: string): Promise<void> {
    const id = this.#newId()
    const response = await this.#send(
      id,
      "/v1/chat/completions",
      {
        model: writerModel,
        messages: [{ role: "user", content: text }],
        stream: true,
        stream_options: { include_usage: true },
        max_completion_tokens: streamTokensMax,
        temperature: 0,
      },
      region,
    )
    const { usage, pieces, failure } = readStream(await this.#reading(id, async () => await response.text()))
    if (!usage || failure) {
      this.receipts.failed.set(id, pieces)
      throw failure ?? new WrongAnswer("a stream ended without its end")
    }
    this.receipts.answered.set(
      id,
      BigInt(usage.prompt_tokens) * inputTokenTicks + BigInt(usage.completion_tokens) * outputTokenTicks,
    )
  }

  #newId(): string {
    return `chaos-${++this.#sent}`
  }

  async #reading<Result>(id: string, read: () => Promise<Result>): Promise<Result> {
    try {
      return await read()
    } catch (error) {
      this.receipts.failed.set(id, 0)
      throw error
    }
  }

  async #send(id: string, path: string, body: object, region?: string): Promise<Response> {
    const gateway = await this.#next()
    const request = async (): Promise<Response> => {
      const response = await fetch(gateway.url + path, {
        method: "POST",
        headers: {
          authorization: `Bearer ${bootstrapKey}`,
          "content-type": "application/json",
          "x-request-id": id,
          ...(region === undefined ? {} : { "x-umpire-region": region }),
        },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(requestTimeoutMs + slackMs),
      })
      if (response.ok) return response
      const { error } = (await response.json()) as { error: { code: string } }
      throw new CleanError(error.code)
    }
    return await this.#reading(id, request)
  }

  /** A load balancer holds a request back while no gateway is ready. */
  async #next(): Promise<Gateway> {
    for (;;) {
      const ready = this.#gateways.filter((gateway) => this.#ready.has(gateway))
      const gateway = ready[this.#turn++ % Math.max(1, ready.length)]
      if (gateway) return gateway
      this.#stop.signal.throwIfAborted()
      await wait(probeEveryMs)
    }
  }

  async #keepProbing(gateway: Gateway): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#probe(gateway)
      await wait(probeEveryMs)
    }
  }

  async #probe(gateway: Gateway): Promise<void> {
    const isReady = await fetch(`${gateway.url}/readyz`, { signal: AbortSignal.timeout(3_000) }).then(
      async (response) => {
        await response.body?.cancel()
        return response.ok
      },
      () => false,
    )
    if (isReady) this.#ready.add(gateway)
    else this.#ready.delete(gateway)
  }
}

/** The first request loads the model, which on a busy machine may take longer than a request is given. */
async function untilAnswered(request: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      await request()
      return
    } catch (error) {
      if (attempt >= warmUpsMax) throw error
    }
}

class CleanError extends Error {}
class WrongAnswer extends Error {}

interface AnswerBody {
  readonly probability?: number
  readonly probabilities?: readonly { readonly probability: number }[]
}
interface DecisionBody {
  readonly answers: readonly AnswerBody[]
  readonly usage: { readonly input_tokens: number }
}

interface StreamUsage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
}

interface StreamOutcome {
  /** Null when the stream is not whole. */
  readonly usage: StreamUsage | null
  readonly pieces: number
  readonly failure: CleanError | null
}

/** A stream is whole when it says why it stopped, what it used, and that it is done; or it says what went wrong. */
function readStream(text: string): StreamOutcome {
  let usage: StreamUsage | null = null
  let pieces = 0
  let hasReason = false
  let isDone = false
  for (const block of text.split("\n\n")) {
    const line = block.split("\n").find((one) => one.startsWith("data: "))
    if (line === undefined) continue
    if (line === "data: [DONE]") {
      isDone = true
      continue
    }
    const chunk = JSON.parse(line.slice("data: ".length)) as {
      error?: { code: string }
      usage?: StreamUsage | null
      choices?: { finish_reason: string | null; delta?: { content?: string | null } }[]
    }
    if (chunk.error) return { usage: null, pieces, failure: new CleanError(chunk.error.code) }
    if (chunk.choices?.some(({ delta }) => delta?.content)) pieces++
    if (chunk.choices?.some(({ finish_reason }) => finish_reason !== null)) hasReason = true
    if (chunk.usage) usage = chunk.usage
  }
  return { usage: isDone && hasReason ? usage : null, pieces, failure: null }
}
