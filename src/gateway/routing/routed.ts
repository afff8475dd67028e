/** The engines of a request, as its handler sees them: the same ports, run at whichever worker the route finds. */
import { branchLength } from "../../engine/branch.ts"
import type { Soon } from "../../base/soon.ts"
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
import type { Placed, Placement, Prepare, Route } from "./route.ts"
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
    prepare(work, signal) {
      const { organizationId, evidence, branches } = work
      let bytes = evidence.length
      for (const branch of branches) bytes += branchLength(branch)
      const placement = place(organizationId, bytes / bytesPerToken, evidence, true)
      const prepare = (engines: WorkerEngines, either: AbortSignal): Promise<PreparedScore> =>
        prepareAt(engines.scorer, work, either)
      return new AnywhereRun<Float64Array, PreparedScore>(newRoute(), placement, prepare).placed(signal)
    },
  }
}

export function routedEmbedder(newRoute: NewRoute, organizationId: string): RoutedEmbedder {
  return {
    prepare(work: EmbedWork, signal) {
      const tokens = work.inputs.reduce(
        (sum, input) => sum + (typeof input === "string" ? input.length / bytesPerToken : input.length),
        0,
      )
      const placement = place(organizationId, tokens, null, true)
      const prepare = (engines: WorkerEngines, either: AbortSignal): Promise<PreparedEmbedding> =>
        prepareAt(engines.embedder, work, either)
      return new AnywhereRun<readonly Float32Array[], PreparedEmbedding>(
        newRoute(),
        placement,
        prepare,
      ).placed(signal)
    },
  }
}

/** Work that is prepared at a worker and answers all at once. */
interface Runnable<Result> {
  readonly inputTokens: number
  run(signal: AbortSignal): Promise<Result>
  discard?(): void
}

/** Work that has a worker, and runs at one after the other until one answers. */
class AnywhereRun<Result, Prepared extends Runnable<Result>> {
  readonly #route: Route
  readonly #placement: Placement
  readonly #prepare: Prepare<Prepared>
  #at: Placed<Prepared> | null = null

  constructor(route: Route, placement: Placement, prepare: Prepare<Prepared>) {
    this.#route = route
    this.#placement = placement
    this.#prepare = prepare
  }

  /** Itself, when a worker has it. */
  placed(signal: AbortSignal): Promise<this> {
    return this.#route.place(this.#placement, signal, this.#prepare).then((at) => {
      at.attempt.measured(at.prepared.inputTokens)
      this.#at = at
      return this
    })
  }

  /** At the worker that has it now. */
  get inputTokens(): number {
    return this.#at?.prepared.inputTokens ?? 0
  }

  run(signal: AbortSignal): Promise<Result> {
    if (!this.#at) throw new Error("Cannot run: no worker has the work")
    const { attempt, prepared } = this.#at
    return attempt
      .step(signal, (either) => prepared.run(either))
      .then(
        (result) => {
          attempt.succeeded()
          return result
        },
        async (error: unknown) => {
          this.#route.failed(attempt, error, signal)
          return await (await this.placed(signal)).run(signal)
        },
      )
  }

  discard(): void {
    this.#at?.prepared.discard?.()
    this.#at?.attempt.abandon()
  }
}

export function routedGenerator(newRoute: NewRoute): RoutedGenerator {
  let rides = false
  return {
    async prepare(work, signal) {
      const route = newRoute()
      const placement = { ...place(work.organizationId, expectedTokens(work), prefixOf(work), false), rides }
      rides = true
      const prepare = (engines: WorkerEngines, either: AbortSignal): Promise<PreparedGeneration> =>
        prepareAt(engines.generator, work, either)
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

/** What prepares work of a kind. */
interface Preparer<Work, Prepared> {
  prepare(work: Work, signal: AbortSignal): Promise<Prepared>
}

function prepareAt<Work, Prepared>(
  opener: (() => Soon<Preparer<Work, Prepared>>) | undefined,
  work: Work,
  signal: AbortSignal,
): Promise<Prepared> {
  if (!opener)
    throw new Fault(
      "invalid_request",
      "Cannot run the request: the model's workers do not offer this operation",
    )
  const engine = opener()
  return engine instanceof Promise ? prepareWhenOpen(engine, work, signal) : engine.prepare(work, signal)
}

/** Opening may take as long as loading a model, which heeds no signal: whoever leaves meanwhile leaves at once. */
async function prepareWhenOpen<Work, Prepared>(
  opening: Promise<Preparer<Work, Prepared>>,
  work: Work,
  signal: AbortSignal,
): Promise<Prepared> {
  const leave = new JoinedSignal(signal)
  try {
    const engine = await leave.until(opening)
    return await engine.prepare(work, signal)
  } finally {
    leave.release()
  }
}
