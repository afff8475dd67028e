/** The engines of a request, as its handler sees them: the same ports, run at whichever worker the route finds. */
import { Fault } from "../../contract/errors.ts"
import type { PreparedScore, ScoreEngine } from "../../engine/engine.ts"
import type {
  EmbedEngine,
  EmbedWork,
  GenerateEngine,
  GenerateWork,
  GenerationEvent,
  PreparedEmbedding,
  PreparedGeneration,
} from "../../engine/generate/generate.ts"
import { JoinedSignal } from "./abort.ts"
import { prefixKey } from "./affinity.ts"
import type { Placed, Placement, Route } from "./route.ts"
import type { WorkerEngines } from "./worker.ts"

export type RoutedScorer = Pick<ScoreEngine, "prepare">
export type RoutedGenerator = Pick<GenerateEngine, "prepare">
export type RoutedEmbedder = Pick<EmbedEngine, "prepare">

/** English text has about four bytes a token; enough to balance by until the request is tokenised. */
const bytesPerToken = 4
/** What a request with an open end is expected to write. */
const outputTokensExpected = 512
/** How many messages name the prefix of a conversation: the instructions and what it began with. */
const namingMessages = 2

/** Begins a way of its own for each piece of work of a request. */
export type NewRoute = () => Route

export function routedScorer(newRoute: NewRoute): RoutedScorer {
  return {
    async prepare(work, signal) {
      const { organizationId, evidence, branches } = work
      let bytes = evidence.length
      for (const branch of branches) bytes += branch.length
      const placement = place(organizationId, bytes / bytesPerToken, evidence, true)
      const prepare = async (engines: WorkerEngines, either: AbortSignal): Promise<PreparedScore> =>
        await (await open(engines.scorer, either)).prepare(work, either)
      const route = newRoute()
      const placed = await route.place(placement, signal, prepare)
      return new AnywhereRun<Float64Array, PreparedScore>(route, placement, prepare, placed)
    },
  }
}

export function routedEmbedder(newRoute: NewRoute, organizationId: string): RoutedEmbedder {
  return {
    async prepare(work: EmbedWork, signal) {
      const tokens = work.inputs.reduce(
        (sum, input) => sum + (typeof input === "string" ? input.length / bytesPerToken : input.length),
        0,
      )
      const placement = place(organizationId, tokens, null, true)
      const prepare = async (engines: WorkerEngines, either: AbortSignal): Promise<PreparedEmbedding> =>
        await (await open(engines.embedder, either)).prepare(work, either)
      const route = newRoute()
      const placed = await route.place(placement, signal, prepare)
      return new AnywhereRun(route, placement, prepare, placed)
    },
  }
}

/** Work that is prepared at a worker and answers all at once. */
interface Runnable<Result> {
  readonly inputTokens: number
  run(signal: AbortSignal): Promise<Result>
  discard?(): void
}

type Prepare<Prepared> = (engines: WorkerEngines, signal: AbortSignal) => Promise<Prepared>

/** Work that has a worker, and runs at one after the other until one answers. */
class AnywhereRun<Result, Prepared extends Runnable<Result>> {
  readonly #route: Route
  readonly #placement: Placement
  readonly #prepare: Prepare<Prepared>
  #placed: Placed<Prepared>

  constructor(route: Route, placement: Placement, prepare: Prepare<Prepared>, placed: Placed<Prepared>) {
    placed.attempt.measured(placed.prepared.inputTokens)
    this.#route = route
    this.#placement = placement
    this.#prepare = prepare
    this.#placed = placed
  }

  /** At the worker that has it now. */
  get inputTokens(): number {
    return this.#placed.prepared.inputTokens
  }

  async run(signal: AbortSignal): Promise<Result> {
    for (;;) {
      const { attempt, prepared } = this.#placed
      try {
        const result = await attempt.step(signal, (either) => prepared.run(either))
        attempt.succeeded()
        return result
      } catch (error) {
        this.#route.failed(attempt, error, signal)
      }
      this.#placed = await this.#route.place(this.#placement, signal, this.#prepare)
    }
  }

  discard(): void {
    this.#placed.prepared.discard?.()
    this.#placed.attempt.abandon()
  }
}

export function routedGenerator(newRoute: NewRoute): RoutedGenerator {
  let rides = false
  return {
    async prepare(work, signal) {
      const route = newRoute()
      const placement = { ...place(work.organizationId, expectedTokens(work), prefixOf(work), false), rides }
      rides = true
      const prepare = async (engines: WorkerEngines, either: AbortSignal): Promise<PreparedGeneration> =>
        await (await open(engines.generator, either)).prepare(work, either)
      let placed = await route.place(placement, signal, prepare)
      const { inputTokensMost, outputTokensMost } = placed.prepared
      placed.attempt.measured(inputTokensMost + Math.min(outputTokensMost, outputTokensExpected))
      return {
        inputTokensMost,
        outputTokensMost,
        usage: () => placed.prepared.usage(),
        run: (outputTokensMax, runSignal) =>
          generateAnywhere(route, placed, outputTokensMax, runSignal, async () => {
            placed = await route.place(placement, runSignal, prepare)
            return placed
          }),
        discard: () => {
          placed.prepared.discard()
          placed.attempt.abandon()
        },
      }
    },
  }
}

/** At one worker after the other up to the first event. After it a failure is the caller's to see: half an answer is not begun anew. */
async function* generateAnywhere(
  route: Route,
  first: Placed<PreparedGeneration>,
  outputTokensMax: number,
  signal: AbortSignal,
  again: () => Promise<Placed<PreparedGeneration>>,
): AsyncGenerator<GenerationEvent> {
  for (let placed = first; ; placed = await again()) {
    const { attempt, prepared } = placed
    const either = attempt.joined(signal)
    const events = prepared.run(outputTokensMax, either.signal)[Symbol.asyncIterator]()
    let isStarted = false
    let isOver = false
    try {
      for (;;) {
        const next = await either.until(events.next())
        if (next.done) break
        attempt.started()
        isStarted = true
        yield next.value
      }
      isOver = true
      attempt.succeeded()
      return
    } catch (error) {
      isOver = true
      route.failed(attempt, error, signal)
      if (isStarted) throw error
    } finally {
      // A reader that leaves ends the work and gives back the place.
      if (!isOver) either.abort(new Fault("inference_failed", "Cannot go on: nobody reads the answer"))
      attempt.abandon()
    }
  }
}

function place(organizationId: string, tokens: number, prefix: string | null, isReady: boolean): Placement {
  const claim = { organizationId, tokens: Math.ceil(tokens), isReady }
  return { claim, prefix: prefix === null ? null : () => prefixKey(organizationId, prefix) }
}

function expectedTokens({ messages, outputTokensMax }: GenerateWork): number {
  const bytes = messages.reduce((sum, { content }) => sum + content.length, 0)
  return bytes / bytesPerToken + Math.min(outputTokensMax ?? outputTokensExpected, outputTokensExpected)
}

function prefixOf({ messages }: GenerateWork): string {
  return messages
    .slice(0, namingMessages)
    .map(({ role, content }) => `${role}\n${content}`)
    .join("\n")
}

/** Those that have answered: what they open is there, and need not be waited for. */
const readyOpeners = new WeakSet<() => Promise<unknown>>()

/** Opening may take as long as loading a model, which heeds no signal: whoever leaves meanwhile leaves at once. */
async function open<Engine>(
  opener: (() => Promise<Engine>) | undefined,
  signal: AbortSignal,
): Promise<Engine> {
  if (!opener)
    throw new Fault(
      "invalid_request",
      "Cannot run the request: the model's workers do not offer this operation",
    )
  if (readyOpeners.has(opener)) return await opener()
  const leave = new JoinedSignal(signal)
  try {
    const engine = await leave.until(opener())
    readyOpeners.add(opener)
    return engine
  } finally {
    leave.release()
  }
}
