/** Asks about every text that is not answered yet, several at a time, and appends what comes of each to the state. */
import { setTimeout as wait } from "node:timers/promises"
import { mapConcurrent } from "../base/lists.ts"
import { ClientError } from "../contract/client.ts"
import { Fault } from "../contract/errors.ts"
import { Unreachable } from "./api-client.ts"
import type { LabelAnswer } from "./label-answers.ts"
import type { LabelState } from "./label-state.ts"

export interface LabelText {
  /** SHA-256 of the text. */
  readonly key: string
  readonly text: string
}

interface Labelled {
  readonly answers: readonly LabelAnswer[]
  readonly tokens: number
}

/** Answers one text; throws a ClientError or a Fault where it is refused. */
export type LabelAsk = (text: string, idempotencyKey: string) => Promise<Labelled>

interface RunDeps {
  readonly ask: LabelAsk
  readonly state: Pick<LabelState, "run" | "append">
  readonly concurrencyMax: number
  readonly onDone: (done: { readonly tokens: number; readonly isFailed: boolean }) => void
}

const attemptsMax = 15
const pauseMsMin = 250
const pauseMsMax = 30_000
/** The key, the balance or the set is the reason: the next text would be refused too. */
const runStatuses: readonly number[] = [401, 402, 403, 404]

/** Throws at the first failure that is not about one text; what is answered by then is in the state. */
export async function labelTexts(
  { ask, state, concurrencyMax, onDone }: RunDeps,
  texts: AsyncIterable<LabelText>,
): Promise<void> {
  const pace = new Pace(concurrencyMax)
  // As many tasks as may ever run; how many of them ask at once is the pace's to say.
  await mapConcurrent(texts, { concurrency: concurrencyMax }, async ({ key, text }) => {
    const labelled = await askPatiently(ask, pace, { text, idempotencyKey: `label-${state.run}-${key}` })
    const isFailed = "error" in labelled
    await state.append(
      isFailed ? { k: key, e: labelled.error } : { k: key, t: labelled.tokens, a: labelled.answers },
    )
    onDone({ tokens: isFailed ? 0 : labelled.tokens, isFailed })
  })
}

/** Tries again what fails for the moment; a text that is refused for itself is answered with why. */
async function askPatiently(
  ask: LabelAsk,
  pace: Pace,
  { text, idempotencyKey }: { text: string; idempotencyKey: string },
): Promise<Labelled | { readonly error: string }> {
  for (let attempt = 1; ;) {
    const beganMs = await pace.enter()
    let pauseMs = 0
    try {
      const labelled = await ask(text, idempotencyKey)
      pace.answered()
      return labelled
    } catch (error) {
      const { kind, message, retryAfterMs } = failureOf(error)
      if (kind === "run") throw error
      if (kind === "text") return { error: message }
      if (kind === "full") pace.refused(beganMs, retryAfterMs)
      else if (attempt < attemptsMax) pauseMs = Math.min(pauseMsMax, pauseMsMin * 2 ** attempt++)
      else if (kind === "connection") throw error
      else return { error: message }
    } finally {
      pace.leave()
    }
    await wait(pauseMs)
  }
}

interface Failure {
  /** What it is about: this text, the whole run, or for the moment the server's load, its state or the way to it. */
  readonly kind: "text" | "run" | "full" | "passing" | "connection"
  readonly message: string
  readonly retryAfterMs: number | null
}

function failureOf(error: unknown): Failure {
  if (error instanceof ClientError || error instanceof Fault) {
    const { status, message, retryAfterMs } = error
    return { kind: kindOf(status), message, retryAfterMs: retryAfterMs ?? null }
  }
  // A connection that breaks while an answer is read is a TypeError.
  const isConnection = error instanceof Unreachable || error instanceof TypeError
  const kind = isConnection ? "connection" : "run"
  return { kind, message: String(error), retryAfterMs: null }
}

function kindOf(status: number): Failure["kind"] {
  if (status === 429 || status === 503) return "full"
  if (runStatuses.includes(status)) return "run"
  return status === 409 || status >= 500 ? "passing" : "text"
}

const limitFirst = 4
const pauseMsDefault = 1_000

export class Pace {
  readonly #limitMax: number
  readonly #nowMs: () => number
  #limit: number
  #running = 0
  /** Refusals of requests that began before it tell nothing new. */
  #cutMs = -Infinity
  #pausedUntilMs = -Infinity
  #freed = Promise.withResolvers<void>()

  constructor(limitMax: number, nowMs: () => number = () => performance.now()) {
    this.#limitMax = limitMax
    this.#nowMs = nowMs
    this.#limit = Math.min(limitFirst, limitMax)
  }

  get limit(): number {
    return Math.floor(this.#limit)
  }

  /** Waits for a place and for the end of a pause; returns when the request begins. */
  async enter(): Promise<number> {
    for (;;) {
      const pauseMs = this.#pausedUntilMs - this.#nowMs()
      if (pauseMs > 0) await wait(pauseMs)
      else if (this.#running >= this.limit) await this.#freed.promise
      else break
    }
    this.#running++
    return this.#nowMs()
  }

  leave(): void {
    this.#running--
    this.#freed.resolve()
    this.#freed = Promise.withResolvers()
  }

  answered(): void {
    this.#limit = Math.min(this.#limitMax, this.#limit + 1 / this.#limit)
  }

  /** The server refused a request that began at `beganMs`. */
  refused(beganMs: number, retryAfterMs: number | null): void {
    const nowMs = this.#nowMs()
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, nowMs + (retryAfterMs ?? pauseMsDefault))
    if (beganMs < this.#cutMs) return
    this.#limit = Math.max(1, this.#limit / 2)
    this.#cutMs = nowMs
  }
}
