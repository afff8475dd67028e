/** Answers that were begun before anyone reads them: their first events have come, so another model need not be tried. */
import type { GenerationEvent } from "../../engine/engine.ts"

type Events = AsyncIterator<GenerationEvent>
type First = IteratorResult<GenerationEvent>

export class BegunRuns {
  readonly #stop: AbortController
  readonly #runs: readonly { readonly events: Events; readonly first: First }[]

  /** Throws the first failure, after all have stopped. */
  static async start(
    run: (signal: AbortSignal) => AsyncIterable<GenerationEvent>[],
    signal: AbortSignal,
  ): Promise<BegunRuns> {
    const stop = new AbortController()
    const events = run(AbortSignal.any([signal, stop.signal])).map((one) => one[Symbol.asyncIterator]())
    try {
      const firsts = await Promise.all(events.map(async (one) => ({ events: one, first: await one.next() })))
      return new BegunRuns(stop, firsts)
    } catch (error) {
      stop.abort(error)
      await Promise.allSettled(events.map(async (one) => await one.return?.()))
      throw error
    }
  }

  private constructor(
    stop: AbortController,
    runs: readonly { readonly events: Events; readonly first: First }[],
  ) {
    this.#stop = stop
    this.#runs = runs
  }

  /** The same answers, from their first events on, until `signal` ends them. */
  continue(signal: AbortSignal): AsyncIterable<GenerationEvent>[] {
    const stop = (): void => this.#stop.abort(signal.reason)
    if (signal.aborted) stop()
    else signal.addEventListener("abort", stop, { once: true })
    return this.#runs.map(({ events, first }) => rest(events, first))
  }

  discard(): void {
    this.#stop.abort()
    for (const { events } of this.#runs) void Promise.resolve(events.return?.()).catch(() => undefined)
  }
}

async function* rest(events: Events, first: First): AsyncGenerator<GenerationEvent> {
  try {
    for (let next = first; !next.done; next = await events.next()) yield next.value
  } finally {
    await events.return?.()
  }
}
