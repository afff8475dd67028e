/** What every transaction needs, whichever database runs it: retries, and a guard against using the wrong handle. */
import { AsyncLocalStorage } from "node:async_hooks"
import { setTimeout as wait } from "node:timers/promises"
import { SqlError } from "./sql.ts"

const attemptsMax = 10
const retryStepMs = 5

const serializationFailure = "40001"
const deadlockDetected = "40P01"

/** Tries again after a serialization failure or a deadlock; the one that won has made progress, so no jitter is needed. */
export async function withRetries<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (let number = 1; ; number++) {
    try {
      return await attempt()
    } catch (error) {
      if (number >= attemptsMax || !isTransient(error)) throw error
      await wait(retryStepMs * number)
    }
  }
}

function isTransient(error: unknown): boolean {
  return (
    error instanceof SqlError && (error.state === serializationFailure || error.state === deadlockDetected)
  )
}

/** PostgreSQL answers COMMIT with ROLLBACK, and without an error, when a statement failed and its error was ignored. */
export function checkCommitted(outcome: { readonly command?: unknown } | undefined): void {
  if (outcome?.command !== "COMMIT") {
    throw new Error(
      "Cannot commit the transaction: one of its statements failed, and the work went on regardless",
    )
  }
}

/** Finds a call of the database from inside its own transaction, which would wait for itself where there is one connection. */
export class TransactionGuard {
  readonly #running = new AsyncLocalStorage<{ open: boolean }>()

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    const mark = { open: true }
    try {
      return await this.#running.run(mark, work)
    } finally {
      // Work that was started inside and outlives the transaction may use the database again.
      mark.open = false
    }
  }

  check(): void {
    if (this.#running.getStore()?.open === true) {
      throw new Error(
        "Cannot use the database inside its own transaction: use the handle that the transaction was given",
      )
    }
  }
}

const channelPattern = /^[a-z][a-z0-9_]{0,62}$/

/** A channel's name becomes part of a statement, so nothing but a plain identifier is let through. */
export function checkChannel(channel: string): void {
  if (!channelPattern.test(channel)) {
    throw new Error(
      `Cannot listen on ${JSON.stringify(channel)}: a channel is a lower-case identifier of at most 63 letters`,
    )
  }
}

/** Who listens to which notification channel of a database. */
export class ListenerSet {
  readonly #byChannel = new Map<string, Set<(payload: string) => void>>()

  get channels(): string[] {
    return [...this.#byChannel.keys()]
  }

  /** Returns whether this is the first listener of the channel. */
  add(channel: string, listener: (payload: string) => void): boolean {
    const known = this.#byChannel.get(channel)
    if (known === undefined) this.#byChannel.set(channel, new Set([listener]))
    else known.add(listener)
    return known === undefined
  }

  /** Returns whether this was the last listener of the channel. */
  remove(channel: string, listener: (payload: string) => void): boolean {
    const known = this.#byChannel.get(channel)
    if (known === undefined || !known.delete(listener) || known.size > 0) return false
    return this.#byChannel.delete(channel)
  }

  deliver(channel: string, payload: string): void {
    for (const listener of this.#byChannel.get(channel) ?? []) listener(payload)
  }
}
