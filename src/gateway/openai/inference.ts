/** What every inference handler does around its work: find the model, reserve, run, and record how it ended. */
import type { Catalog, Model } from "../../base/catalog.ts"
import { nonEmpty } from "../../base/lists.ts"
import type { ModelUse } from "../../base/virtual-models.ts"
import type { Clock } from "../../base/clock.ts"
import type { Ids } from "../../base/ids.ts"
import type { CallSource } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import {
  begin,
  type GenerateWork,
  type GenerationEvent,
  type GenerationSizes,
  type GenerationUsage,
  measure,
  noGenerationUsage,
  PendingAdmission,
} from "../../engine/engine.ts"
import { requestAttributes } from "../telemetry.ts"
import { type Meter, noUsage, type Outcome, type Sequence, type Usage } from "../meter.ts"
import { type Asker, type MeteredCall, runMetered } from "../metered-call.ts"
import type { Guard, Guardrails } from "../guardrails/guardrails.ts"
import { GatheredAnswer, conversationInput } from "../content/request-content.ts"
import type { AskedContent, ContentEnd, ContentLogger } from "../content/content-logger.ts"
import { notEnforcedHeader } from "../../contract/headers.ts"
import type { LanguageTag } from "../../contract/language.ts"
import { bodyTags } from "../../contract/tags.ts"
import { checked, checkSchemas, notEnforcedValue } from "./answer-check.ts"
import type { BodyReader, RequestOf, Wire } from "./body.ts"
import { readersOf } from "./media.ts"
import { isShortOfCredit } from "../reservations.ts"
import { detectLanguage } from "../language.ts"
import { prefixOf, type Routed } from "../routing/router.ts"
import type { ModelResolver, Resolved } from "../organization-access.ts"
import type { ScoreDeps } from "../score.ts"
import { firstThatServes, tellStages, type Turn } from "../stages.ts"

export interface InferenceDeps {
  readonly catalog: Catalog
  readonly models: ModelResolver
  readonly router: ScoreDeps["router"]
  readonly meter: Meter
  readonly clock: Clock
  readonly ids: Ids
  /** The deadline of a request: the longest that a model can work on one. */
  readonly timeoutMs: number
  readonly readBody: BodyReader
  readonly guardrails: Pick<Guardrails, "begin">
  readonly content: ContentLogger
}

type GenerationEnd = Pick<Outcome, "stopReason" | "toolCalls">

/** Runs an inference request: its body is read, tagged and checked first. */
export async function runInference<W extends Wire, Result>(
  deps: InferenceDeps,
  { callSource, wire, asker, check }: InferenceStart<W>,
  work: (call: MeteredCall, body: RequestOf<W>) => Promise<Result>,
): Promise<Result> {
  return await runMetered(deps, { callSource, asker }, async (call) => {
    const { organizationId, sequence, request } = call
    check?.(call)
    const body = await call.read(asker.body, async (bytes) => {
      const asked = { organizationId, signal: request.signal, sequence }
      return await deps.readBody(wire, bytes, asked)
    })
    call.tag(bodyTags(body))
    return await work(call, body)
  })
}

interface InferenceStart<W extends Wire> {
  readonly callSource: CallSource
  readonly wire: W
  readonly asker: Asker & { readonly body: Uint8Array }
  /** What is refused before the body is looked at. */
  readonly check?: (call: MeteredCall) => void
}

/** `about` is what splits are sticky by, where no header says it. */
export interface AskedModel {
  readonly name: string
  readonly about: string
  readonly language: LanguageTag
}

/** What the name of a model comes to. */
export async function resolveModel(
  { models }: InferenceDeps,
  call: MeteredCall,
  { about, ...named }: AskedModel & { readonly wanted: ModelUse },
): Promise<Resolved> {
  const { organizationId } = call
  return await models.resolve({ ...named, organizationId, key: call.stickyKey(about) })
}

/** Only those of its models that can read the work. */
const readable = (resolved: Resolved, work: GenerateWork): Resolved => ({
  ...resolved,
  stages: nonEmpty(resolved.stages.map((stage) => readersOf(stage, work))),
})

/** Tries the models of a name in order; a cascade is for decisions only. */
export async function serve<Result>(
  call: MeteredCall,
  { virtual, cascade, stages: [models] }: Resolved,
  work: (turn: Turn) => Promise<Result>,
): Promise<Result> {
  const { sequence, request } = call
  if (cascade)
    throw new Fault(
      "invalid_request",
      `Cannot run the request: ${virtual} is a cascade, which answers decisions and System One only`,
      { param: "model" },
    )
  return await firstThatServes(
    sequence,
    { models, virtual },
    {
      signal: request.signal,
      work: async (turn) => {
        const result = await work(turn)
        if (virtual !== null)
          tellStages((name, value) => call.header(name, value), sequence.stages, sequence.answering)
        return result
      },
    },
  )
}

/** What is kept of what is not a decision. */
export const inputContent = (input: AskedContent["input"]): AskedContent => ({
  evidence: null,
  questions: [],
  input,
})

export const outputContent = (model: string, output: ContentEnd["output"] = null): ContentEnd => ({
  model,
  questionSet: null,
  answers: [],
  review: null,
  output,
})

const meterUsage = (used: GenerationUsage): Usage => ({
  inputTokens: Math.max(0, used.inputTokens - used.cachedInputTokens),
  cachedInputTokens: used.cachedInputTokens,
  outputTokens: used.outputTokens,
  executionMs: used.executionMs,
})

/** Halvings of an answer's limit before a request is refused for lack of credit. */
const affordableAttemptsMax = 16
interface AskedGeneration {
  readonly work: GenerateWork
  readonly count: number
  /** Parts of the answer are sent before it ends. */
  readonly isStreamed: boolean
}

/** With one of the models that its name stands for. */
interface ResolvedGeneration extends AskedGeneration {
  readonly model: Model
  readonly resolved: Resolved
}

/** One of the answers, on its way. */
interface BegunAnswer {
  readonly admission: PendingAdmission<GenerationSizes, number>
  readonly sizes: GenerationSizes
  readonly events: AsyncIterable<GenerationEvent>
  readonly gathered: GatheredAnswer
}

/** Several answers to one prompt, admitted together and begun. */
export class Generating {
  readonly model: Model
  readonly call: MeteredCall
  readonly #guard: Guard
  readonly #stop = new AbortController()
  readonly #signal: AbortSignal
  readonly #answers: BegunAnswer[] = []
  readonly #usage: GenerationUsage[] = []
  #runs: AsyncIterable<GenerationEvent>[] = []

  static async start(
    deps: InferenceDeps,
    call: MeteredCall,
    asked: AskedGeneration & { readonly model: string },
  ): Promise<Generating> {
    const named = await namedFor(call, asked)
    call.sequence.trace.span?.set(requestAttributes(asked.work, asked.count))
    const resolved = readable(await resolveModel(deps, call, named), asked.work)
    return await serve(call, resolved, async ({ model, isLast }) => {
      call.used = () => noUsage
      const own = { ...asked, model, resolved }
      const guard = await guarded(deps, call, own)
      const { organizationId } = call
      // A guardrail may have sent the request to another model.
      const answering =
        guard.model === model.sku
          ? model
          : await deps.models.first({ organizationId, name: guard.model, wanted: "generation" })
      readersOf([answering], asked.work)
      const generating = new Generating(answering, call, guard)
      // A request that is left before its end, or fails for good, is charged what the model used until then.
      call.used = () => meterUsage(generating.usage())
      try {
        await generating.#begin(deps, own)
        // What fails before its first event is the next model's to answer.
        if (!isLast) await generating.#firstEvents()
        return generating
      } catch (error) {
        await generating.#end(error)
        throw error
      }
    })
  }

  private constructor(model: Model, call: MeteredCall, guard: Guard) {
    this.model = model
    this.call = call
    this.#guard = guard
    this.#signal = AbortSignal.any([call.request.signal, this.#stop.signal])
  }

  async #begin(deps: InferenceDeps, asked: ResolvedGeneration): Promise<void> {
    const { call, model } = this
    if (asked.resolved.virtual !== null && model !== asked.model) call.sequence.beginStage(model)
    const routed = await call.route(deps.router, model)
    // One after the other: further answers share the slot of the first.
    for (let index = 0; index < asked.count; index++) await this.#beginAnswer(routed, index)
    const sizes = this.#answers.map((answer) => answer.sizes)
    const isOpen = asked.work.outputTokensMax === null
    const most = await reserve(call.sequence, model, { sizes, isOpen, timeoutMs: deps.timeoutMs })
    // The credit may have been long in coming.
    this.#signal.throwIfAborted()
    const notEnforced = sizes[0] && notEnforcedValue(sizes[0])
    if (notEnforced) call.header(notEnforcedHeader, notEnforced)
    call.keep(() => inputContent(conversationInput(this.#guard.work.messages)))
    for (const { admission, sizes: own } of this.#answers)
      admission.grant(Math.min(most, own.outputTokensMost))
    this.#runs = this.#answers.map((answer) => this.#run(answer))
  }

  async #beginAnswer(routed: Routed, index: number): Promise<void> {
    const admission = new PendingAdmission<GenerationSizes, number>()
    this.#usage[index] = noGenerationUsage
    const { first, events } = begin(
      routed.generate(withSeed(this.#guard.work, index), {
        signal: this.#signal,
        admit: admission.admit,
        onUsage: (usage) => (this.#usage[index] = usage),
      }),
    )
    const sizes = await admission.size(first)
    this.#answers.push({ admission, sizes, events, gathered: new GatheredAnswer() })
  }

  #run({ sizes, events, gathered }: BegunAnswer): AsyncIterable<GenerationEvent> {
    const { work } = this.#guard
    return gathered.gather(
      this.#guard.output(sizes.isHandedOn === true ? checked(events, work, this.#signal) : events),
    )
  }

  /** Throws what keeps them from coming. */
  async #firstEvents(): Promise<void> {
    const begun = this.#runs.map((run) => begin(run))
    this.#runs = begun.map(({ events }) => events)
    await Promise.all(begun.map(async ({ first }) => await first))
  }

  /** What reads them gets the reason. */
  cancel(reason: unknown): void {
    for (const { admission } of this.#answers) admission.refuse(reason)
    this.#stop.abort(reason)
  }

  /** Ends answers that are not read any more; resolves when what they used is known. */
  async #end(reason: unknown): Promise<void> {
    this.cancel(reason)
    const runs = [...this.#runs, ...this.#answers.map(({ events }) => events)]
    await Promise.allSettled(runs.map(async (run) => await run[Symbol.asyncIterator]().return?.()))
  }

  /** What the client knows the answer by. */
  identify(id: string): void {
    this.call.sequence.trace.span?.set({ "gen_ai.response.id": id })
  }

  /** The events of each answer. */
  runs(): readonly AsyncIterable<GenerationEvent>[] {
    return this.#runs
  }

  /** Resolves when usage, and what is kept of the content, are on record. */
  async succeed(ended: GenerationEnd): Promise<void> {
    const output = () => this.#answers.map(({ gathered }) => gathered.message())
    await this.call.succeed(meterUsage(this.usage()), () => outputContent(this.model.sku, output()), ended)
  }

  /** The prompt is counted once, however many answers were written to it. */
  usage(): GenerationUsage {
    const used = this.#usage
    const sum = (field: keyof GenerationUsage): number => used.reduce((total, one) => total + one[field], 0)
    const evaluated = used.find(({ inputTokens }) => inputTokens > 0)
    return {
      inputTokens: evaluated?.inputTokens ?? 0,
      cachedInputTokens: evaluated?.cachedInputTokens ?? 0,
      outputTokens: sum("outputTokens"),
      reasoningTokens: sum("reasoningTokens"),
      executionMs: sum("executionMs"),
    }
  }
}

/** How long the prompt of a request would be; nothing is evaluated, and nothing charged. */
export async function countPromptTokens(
  deps: InferenceDeps,
  call: MeteredCall,
  asked: { readonly model: string; readonly work: GenerateWork },
): Promise<number> {
  const named = await namedFor(call, asked)
  const resolved = readable(await resolveModel(deps, call, named), asked.work)
  checkSchemas(asked.work)
  const tokens = await serve(call, resolved, async ({ model }) => {
    await call.sequence.reserve(model, noUsage)
    const routed = await call.route(deps.router, model)
    const { signal } = call.request
    const sizes = await measure<GenerationSizes>(
      async (admit) => await routed.generate(asked.work, { signal, admit, onUsage: () => undefined }).next(),
    )
    return sizes.inputTokensMost
  })
  await call.succeed(noUsage, () => outputContent(asked.model))
  return tokens
}

/** What the organization's guardrails let the model read; everything else that can be refused is refused before. */
async function guarded(
  { guardrails }: InferenceDeps,
  call: MeteredCall,
  { model: { sku: model }, resolved: { virtual }, work, isStreamed }: ResolvedGeneration,
): Promise<Guard> {
  checkSchemas(work)
  const { organizationId, principal, sequence } = call
  const { id: requestId, signal, isBatch = false } = call.request
  const header = (name: string, value: string): void => call.header(name, value)
  const guardedCall = { organizationId, principal, requestId, sequence, signal, isBatch, isStreamed, header }
  return await guardrails.begin(guardedCall, { model, virtual, work })
}

const namedFor = async (
  call: MeteredCall,
  { model, work }: { readonly model: string; readonly work: GenerateWork },
): Promise<AskedModel & { readonly wanted: "generation" }> => ({
  name: model,
  wanted: "generation",
  about: prefixOf(work),
  language: call.inLanguage(await detectLanguage(lastOfUser(work))),
})

/** A conversation is in the language of what was said last. */
const lastOfUser = ({ messages }: GenerateWork): string =>
  messages.findLast(({ role }) => role === "user")?.content ?? ""

/** A named seed gives each of several answers its own, in a repeatable way. */
function withSeed(work: GenerateWork, index: number): GenerateWork {
  const { seed } = work.sampling
  return seed === null || index === 0 ? work : { ...work, sampling: { ...work.sampling, seed: seed + index } }
}

interface ReservedAnswers {
  readonly sizes: readonly GenerationSizes[]
  /** The request sets no limit. */
  readonly isOpen: boolean
  readonly timeoutMs: number
}

/** How many tokens each answer may have. One without a limit of its own is as long as can be paid for. */
async function reserve(
  sequence: Sequence,
  model: Model,
  { sizes, isOpen, timeoutMs }: ReservedAnswers,
): Promise<number> {
  const inputTokens = Math.max(...sizes.map((one) => one.inputTokensMost))
  let outputTokens = Math.max(...sizes.map((one) => one.outputTokensMost))
  for (let attempt = 1; ; attempt++) {
    try {
      await sequence.reserve(model, {
        inputTokens,
        cachedInputTokens: 0,
        outputTokens: outputTokens * sizes.length,
        executionMs: timeoutMs * sizes.length,
      })
      return outputTokens
    } catch (error) {
      const short = isShortOfCredit(error)
      if (!short || !isOpen || outputTokens <= 1 || attempt >= affordableAttemptsMax) throw error
      outputTokens = Math.floor(outputTokens / 2)
    }
  }
}
