/** The engines of a process or worker as a peer serves them, and the process of an embedded engine, which ends itself after a failure. */
import { inspect } from "node:util"
import { endProcess, servePeer } from "../base/peer/serve.ts"
import type { Handlers } from "../base/peer/peer.ts"
import { Fault } from "../contract/errors.ts"
import {
  begin,
  type Embedded,
  type EmbedEngine,
  type EmbedWork,
  type EngineCall,
  type EvidenceVector,
  type GenerateEngine,
  type GenerateWork,
  type GenerationEvent,
  type GenerationSizes,
  type GenerationUsage,
  type ModelFacts,
  noGenerationUsage,
  PendingAdmission,
  type Scored,
  type ScoreEngine,
  type ScoreWork,
  type VectorWork,
} from "./engine.ts"

/** The first item of each stream is the size of its work; reading on admits it. */
export interface EngineService {
  score: { input: ModelWork<ScoreWork>; item: number; output: Scored }
  vector: { input: ModelWork<VectorWork>; output: EvidenceVector }
  generate: {
    input: ModelWork<GenerateWork>
    item: GenerationItem
    output: GenerationUsage
    /** The most tokens to write. */
    next: number
  }
  embed: { input: ModelWork<EmbedWork>; item: number; output: Embedded }
}

interface ModelWork<Work> {
  /** What the other side calls the model; a process has one model and ignores it. */
  readonly model: string
  readonly work: Work
}

/** The sizes, then the events as they come. A failed or cancelled one ends with an item that says what was used. */
export type GenerationItem =
  | ({ readonly kind: "sizes" } & GenerationSizes)
  | {
      readonly kind: "events"
      readonly events: readonly GenerationEvent[]
      readonly usage: GenerationUsage
    }

/** What a model can do. */
export interface ModelEngines {
  readonly scorer?: Pick<ScoreEngine, "score" | "vector" | "sizeMost">
  readonly generator?: Pick<GenerateEngine, "generate">
  readonly embedder?: Pick<EmbedEngine, "embed">
}

type Find = (model: string, method: keyof EngineService) => ModelEngines

/** `find` throws for a model that is not served. */
export function engineHandlers(find: Find): Handlers<EngineService> {
  return {
    score: ({ model, work }, signal) =>
      guarded(
        admitted(signal, async (call) => await served(find(model, "score").scorer).score(work, call)),
        signal,
      ),
    vector: async ({ model, work }, signal) => await makeVector(find, model, { work, signal }),
    generate: ({ model, work }, signal) => guarded(generate(find, model, { work, signal }), signal),
    embed: ({ model, work }, signal) =>
      guarded(
        admitted(signal, async (call) => await served(find(model, "embed").embedder).embed(work, call)),
        signal,
      ),
  }
}

async function* admitted<Result>(
  signal: AbortSignal,
  run: (call: EngineCall) => Promise<Result>,
): AsyncGenerator<number, Result, undefined> {
  const admission = new PendingAdmission<number, void>()
  const result = run({ signal, admit: admission.admit })
  try {
    yield await admission.size(result)
    admission.grant()
    return await result
  } finally {
    admission.refuse()
  }
}

async function makeVector(
  find: Find,
  model: string,
  { work, signal }: { readonly work: VectorWork; readonly signal: AbortSignal },
): Promise<EvidenceVector> {
  const engine = served(find(model, "vector").scorer)
  if (engine.vector) return await engine.vector(work, signal)
  throw new Fault("inference_failed", "Cannot make a vector: the model is no encoder")
}

async function* generate(
  find: Find,
  model: string,
  { work, signal }: { readonly work: GenerateWork; readonly signal: AbortSignal },
): AsyncGenerator<GenerationItem, GenerationUsage, number> {
  const engine = served(find(model, "generate").generator)
  const admission = new PendingAdmission<GenerationSizes, number>()
  let usage = noGenerationUsage
  const onUsage = (used: GenerationUsage): void => void (usage = used)
  const { first, events } = begin(engine.generate(work, { signal, admit: admission.admit, onUsage }))
  try {
    const sizes = await admission.size(first)
    admission.grant(yield { kind: "sizes", ...sizes })
    try {
      for await (const group of gather(events)) yield { kind: "events", events: group, usage }
      return usage
    } catch (error) {
      yield { kind: "events", events: [], usage }
      throw error
    }
  } finally {
    admission.refuse()
  }
}

/**
 * Every message wakes the gateway, on a machine whose cores all decode. Tokens of small models come every few
 * milliseconds; a reader does not notice whether they arrive one by one.
 */
const gatherMs = 20

const late = Symbol("late")

/** Gathers the events of one generation into groups: the first leaves at once, those that follow closely together. */
export async function* gather(
  source: AsyncIterable<GenerationEvent>,
  waitMs: number = gatherMs,
): AsyncGenerator<readonly GenerationEvent[], undefined, undefined> {
  const events = source[Symbol.asyncIterator]()
  let group: GenerationEvent[] = []
  let sentMs = -Infinity
  let next: Promise<IteratorResult<GenerationEvent>> | null = null
  try {
    for (;;) {
      if (group.length > 0 && performance.now() - sentMs >= waitMs) {
        yield group
        group = []
        sentMs = performance.now()
      }
      next ??= events.next()
      const step = group.length === 0 ? await next : await within(next, sentMs + waitMs - performance.now())
      if (step === late) continue
      next = null
      if (step.done) break
      append(group, step.value)
    }
  } catch (error) {
    next = null
    if (group.length > 0) yield group
    throw error
  } finally {
    // The result of this read is no longer awaited.
    next?.catch(() => undefined)
    await events.return?.()
  }
  if (group.length > 0) yield group
}

async function within<Step>(next: Promise<Step>, ms: number): Promise<Step | typeof late> {
  const { promise, resolve } = Promise.withResolvers<typeof late>()
  // The time may be up since it was last looked at; Node warns of negative delays.
  const timer = setTimeout(() => resolve(late), Math.max(0, ms))
  try {
    return await Promise.race([next, promise])
  } finally {
    clearTimeout(timer)
  }
}

/** Pieces of one text become one event. */
function append(events: GenerationEvent[], event: GenerationEvent): void {
  const last = events.at(-1)
  const whole = last && joined(last, event)
  if (whole) events[events.length - 1] = whole
  else events.push(event)
}

function joined(last: GenerationEvent, next: GenerationEvent): GenerationEvent | null {
  if (last.kind === "text" && next.kind === "text") {
    const logprobs = last.logprobs && next.logprobs ? [...last.logprobs, ...next.logprobs] : null
    return { kind: "text", text: last.text + next.text, logprobs }
  }
  if (last.kind === "reasoning" && next.kind === "reasoning")
    return { kind: "reasoning", text: last.text + next.text }
  if (last.kind === "arguments" && next.kind === "arguments")
    return { kind: "arguments", text: last.text + next.text }
  return null
}

function served<Engine>(engine: Engine | undefined): Engine {
  if (engine) return engine
  throw new Fault("inference_failed", "Cannot run the work: the model does not serve this kind")
}

/** An error that is no Fault is a mistake of ours: it is written here, and the other side learns only that it happened. */
async function* guarded<Item, Output, Next>(
  stream: AsyncGenerator<Item, Output, Next>,
  signal: AbortSignal,
): AsyncGenerator<Item, Output, Next> {
  try {
    return yield* stream
  } catch (error) {
    if (signal.aborted) throw error
    const written = error instanceof Fault ? error.cause : error
    if (written !== undefined) process.stderr.write(`${inspect(written)}\n`)
    if (error instanceof Fault) throw error
    throw new Fault("inference_failed", "Cannot run the request: the engine failed while it worked")
  }
}

/** A model that is loaded. */
interface LoadedScorer<Stats extends object> extends Pick<ScoreEngine, "score" | "vector"> {
  readonly facts: ModelFacts
  stats(): Stats
  /** How long the present run has taken; 0 between runs. */
  runningMs(): number
}

/** What the process says of itself with each answered ping. */
export type ScoreStatus<Stats> = Stats & {
  /** Requests that the process holds, from when they come until they are answered, refused or cancelled. */
  readonly held: number
}

/** Requests that are held, whether they run or not: callers are many and their texts may be large. */
const heldMax = 8192
const heldTokensMax = 64 * 1024 * 1024
/** A run that takes longer is stuck, and the process with it. */
const runMsMax = 300_000

/** Called once by the module that the process starts with. */
export function serveScorer<Stats extends object>(
  open: (options: unknown) => Promise<LoadedScorer<Stats>>,
): void {
  const held = { requests: 0, tokens: 0 }
  let scorer: LoadedScorer<Stats> | undefined

  const opened = (): LoadedScorer<Stats> => {
    if (!scorer) throw new Fault("inference_failed", "Cannot score: the model is not loaded yet")
    return scorer
  }

  const score: ScoreEngine["score"] = async (work, { signal, admit }) => {
    const model = opened()
    if (held.requests >= heldMax || held.tokens >= heldTokensMax) throw holdsTooMuch(held.requests)
    held.requests++
    let tokens = 0
    const hold = async (inputTokens: number): Promise<void> => {
      tokens = inputTokens
      held.tokens += tokens
      await admit(inputTokens)
    }
    try {
      return await model.score(work, { signal, admit: hold }).catch(endAfterFailure)
    } finally {
      held.requests--
      held.tokens -= tokens
    }
  }

  const vector: ScoreEngine["vector"] = async (work, signal) => {
    const model = opened()
    if (!model.vector) throw new Fault("inference_failed", "Cannot make a vector: the model is no encoder")
    return await model.vector(work, signal).catch(endAfterFailure)
  }

  servePeer<EngineService & { open: { input: unknown; output: ModelFacts } }>(
    {
      open: async (options) => {
        scorer = await open(options)
        return scorer.facts
      },
      ...engineHandlers(() => ({ scorer: { score, vector } })),
    },
    {
      status: (): ScoreStatus<Stats> | undefined => {
        if (scorer && scorer.runningMs() > runMsMax) end("A run did not end")
        return scorer && { ...scorer.stats(), held: held.requests }
      },
    },
  )
}

const holdsTooMuch = (requests: number): Fault =>
  new Fault("overloaded", `Cannot take the request: ${requests} are held; try again later`, {
    retryAfterMs: 1000,
  })

/** Nothing is known of what ran after a failure: a fresh process is the repair, and the request is run again there. */
function endAfterFailure(error: unknown): never {
  if (error instanceof Fault && error.code === "inference_failed")
    end(`${error.message}: ${String(error.cause)}`)
  throw error
}

function end(why: string): void {
  process.stderr.write(`${why}\n`)
  endProcess()
}
