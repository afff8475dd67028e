/** What every inference handler does around its work: find the model, reserve, run, and record how it ended. */
import type { Catalog, Model } from "../../base/catalog.ts"
import type { ModelUse } from "../../base/virtual-models.ts"
import type { Clock } from "../../base/clock.ts"
import type { Ids } from "../../base/ids.ts"
import type { Principal, Standing } from "../../contract/access.ts"
import { type RequestFacts, sequenceHeader } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type {
  GenerateWork,
  GenerationEvent,
  GenerationUsage,
  PreparedGeneration,
} from "../../engine/engine.ts"
import { type Meter, type Sequence, finishFailed, success, tagByHeader } from "../meter.ts"
import { type CallSource, type Outcome, type Usage, noUsage } from "../sequence-record.ts"
import type { Guard, Guardrails } from "../guardrails/guardrails.ts"
import type { ContentMessage } from "../../contract/content.ts"
import { GatheredAnswer, conversationInput } from "../content/generation.ts"
import type { AskedContent, ContentKeeper, PendingContent } from "../content/keeper.ts"
import { type Tags, bodyTags, mergeTags } from "../tags.ts"
import { checked } from "./answer-check.ts"
import { checkSchemas, notEnforcedHeader, notEnforcedValue } from "./schemas.ts"
import { readRoutingHint, regionHeader } from "../routing/plan.ts"
import type { BodyReader, RequestOf, Wire } from "./body.ts"
import type { Routed, Router } from "../routing/router.ts"
import { type ModelResolver, type Resolved, stickyKey } from "../organization-access.ts"
import { type Turn, firstThatServes } from "../stages.ts"
import { tellStages } from "../further-stages.ts"
import { BegunRuns } from "./begun-runs.ts"

/** Who asks, for which organization. */
export interface Asker {
  readonly principal: Principal | null
  readonly standing: Standing | null
  readonly request: RequestFacts
  /** Adds a header to the response; a conversation over a socket has none. */
  header?(name: string, value: string): void
}

export interface InferenceParts {
  readonly catalog: Catalog
  readonly models: ModelResolver
  readonly router: Pick<Router, "open">
  readonly meter: Meter
  readonly clock: Clock
  readonly ids: Ids
  /** The deadline of a request: the longest that a model can work on one. */
  readonly timeoutMs: number
  readonly readBody: BodyReader
  readonly guardrails: Pick<Guardrails, "begin">
  readonly content: ContentKeeper
}

interface SucceededCall extends Pick<Outcome, "stopReason" | "toolCalls"> {
  readonly model: string
  /** What was generated, for the content that is kept. */
  readonly output?: () => ContentMessage[]
}

/** An open request: its sequence is finished once, however it ends, and its place at a worker is given back. */
export class MeteredCall {
  readonly sequence: Sequence
  readonly organizationId: string
  readonly #parts: InferenceParts
  readonly #asker: Asker
  readonly #principal: Principal
  readonly #callSource: CallSource
  #tags: Tags = {}
  #content: PendingContent | null = null
  #routed: Routed | null = null

  constructor(parts: InferenceParts, asker: Asker, callSource: CallSource) {
    const { principal, standing, request } = asker
    if (!principal || !standing)
      throw new Error("Cannot run inference: the endpoint lets in callers without a standing")
    this.#parts = parts
    this.#asker = asker
    this.#principal = principal
    this.#callSource = callSource
    this.organizationId = standing.organizationId
    this.sequence = parts.meter.begin({
      callSource,
      inferenceType: callSource === "embeddings" ? "embedding" : "generation",
      principal,
      organizationId: standing.organizationId,
      request,
    })
    asker.header?.(sequenceHeader, this.sequence.id)
  }

  /** The request that a body holds; a body that holds none ends the call. */
  async read<W extends Wire>(wire: W, bytes: Uint8Array): Promise<RequestOf<W>> {
    const { organizationId, sequence } = this
    const { request } = this.#asker
    const { signal } = request
    return await this.attempt(async () => {
      const tags = tagByHeader(sequence, request, bytes)
      const body = await this.#parts.readBody(wire, bytes, { organizationId, signal, sequence })
      this.#tags = mergeTags(tags, bodyTags(body))
      sequence.tag(this.#tags)
      return body
    })
  }

  /** Begins to keep the content of the request, where it is to be kept; `succeed` ends it. */
  keep(asked: () => AskedContent["input"]): void {
    this.#content = this.#parts.content.begin({
      seqId: this.sequence.id,
      organizationId: this.organizationId,
      principal: this.#principal,
      startedMs: this.#asker.request.startedMs,
      endpoint: this.#callSource,
      tags: this.#tags,
      span: this.sequence.trace.span,
      asked: () => ({ evidence: null, questions: [], input: asked() }),
    })
  }

  /** Finds the engines that may run the model for this organization. */
  async route(model: Model): Promise<Routed> {
    const { request } = this.#asker
    // Of a model that did not serve.
    this.#routed?.close()
    this.#routed = await this.#parts.router.open({
      model: model.sku,
      organizationId: this.organizationId,
      hint: readRoutingHint(request),
      isBatch: request.isBatch === true,
      trace: this.sequence.trace,
      onPlaced: (region) => {
        this.sequence.placed(region)
        this.#asker.header?.(regionHeader, region)
      },
    })
    return this.#routed
  }

  /** What the name of a model comes to; `about` is what splits are sticky by, where no header says it. */
  async resolve(name: string, wanted: ModelUse, about: string): Promise<Resolved> {
    const { organizationId } = this
    const key = stickyKey(this.#asker.request, about)
    return await this.#parts.models.resolve({ organizationId, name, wanted, key })
  }

  /** Tries the models of a name in order; a cascade is for decisions only. */
  async serve<Result>(
    { virtual, cascade, stages: [models] }: Resolved,
    work: (turn: Turn) => Promise<Result>,
  ): Promise<Result> {
    const { sequence } = this
    if (cascade)
      throw new Fault(
        "invalid_request",
        `Cannot run the request: ${virtual} is a cascade, which answers decisions and System One only`,
        { param: "model" },
      )
    const { signal } = this.#asker.request
    return await firstThatServes(sequence, { models, virtual }, signal, async (turn) => {
      const result = await work(turn)
      if (virtual !== null)
        tellStages((name, value) => this.#asker.header?.(name, value), sequence.stages, sequence.answering)
      return result
    })
  }

  /** Runs one stage; when it throws, the sequence is finished with what was used. */
  async attempt<Result>(work: () => Promise<Result>, used: () => Usage = () => noUsage): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      await this.fail(error, used())
      throw error
    }
  }

  async fail(error: unknown, usage: Usage): Promise<void> {
    this.#routed?.close()
    await finishFailed(this.sequence, usage, error)
  }

  async succeed(usage: Usage, ended: SucceededCall): Promise<void> {
    this.#routed?.close()
    const { stopReason, toolCalls, model, output } = ended
    const outcome = { ...success, stopReason, toolCalls }
    await Promise.all([
      this.#content?.finish(() => ({
        model,
        questionSet: null,
        answers: [],
        review: null,
        output: output?.() ?? null,
      })),
      this.sequence.finish(usage, outcome),
    ])
  }
}

export const meterUsage = (used: GenerationUsage): Usage => ({
  inputTokens: Math.max(0, used.inputTokens - used.cachedInputTokens),
  cachedInputTokens: used.cachedInputTokens,
  outputTokens: used.outputTokens,
  executionMs: used.executionMs,
})

/** Halvings of an answer's limit before a request is refused for lack of credit. */
const affordableAttemptsMax = 16
/** A shorter answer may be affordable. */
const shortCodes: readonly string[] = [
  "insufficient_credits",
  "spend_limit_exceeded",
  "key_budget_exceeded",
  "tag_budget_exceeded",
]

interface PreparedFor {
  readonly model: Model
  readonly resolved: Resolved
  readonly work: GenerateWork
  readonly count: number
  /** Parts of the answer are sent before it ends. */
  readonly isStreamed: boolean
}

/** Several answers to one prompt, prepared and paid for. */
export class Generating {
  readonly model: Model
  readonly call: MeteredCall
  readonly #guard: Guard
  readonly #prepared: readonly PreparedGeneration[]
  readonly #outputTokensMax: number
  readonly #answers: readonly GatheredAnswer[]
  #begun: BegunRuns | null = null

  static async start(
    parts: InferenceParts,
    asker: Asker,
    call: MeteredCall,
    asked: Omit<PreparedFor, "model" | "resolved"> & { readonly model: string },
  ): Promise<Generating> {
    // Whoever leaves before the first event, or fails for good, is charged what the model used until then.
    let begun: Generating | null = null
    const used = (): Usage => (begun ? meterUsage(begun.usage()) : noUsage)
    return await call.attempt(async () => {
      const resolved = await call.resolve(asked.model, "generation", beginning(asked.work))
      return await call.serve(resolved, async ({ model, isLast }) => {
        begun = null
        const generating = await Generating.#prepare(parts, asker, call, { ...asked, model, resolved })
        begun = generating
        // What fails before its first event is the next model's to answer.
        if (!isLast) await generating.#begin(asker.request.signal)
        return generating
      })
    }, used)
  }

  static async #prepare(
    parts: InferenceParts,
    asker: Asker,
    call: MeteredCall,
    asked: PreparedFor,
  ): Promise<Generating> {
    const { signal } = asker.request
    const guard = await guarded(parts, asker, call, asked)
    const model = await guardedModel(parts, call, asked, guard)
    if (asked.resolved.virtual !== null && model !== asked.model) call.sequence.beginStage(model)
    const { generator: engine } = await call.route(model)
    const prepared: PreparedGeneration[] = []
    try {
      for (let index = 0; index < asked.count; index++)
        prepared.push(await engine.prepare(withSeed(guard.work, index), signal))
      const most = await reserve(
        call.sequence,
        model,
        prepared,
        asked.work.outputTokensMax === null,
        parts.timeoutMs,
      )
      // The credit may have been long in coming; an answer that nobody waits for any more would never be run.
      signal.throwIfAborted()
      const open = prepared[0] && notEnforcedValue(prepared[0])
      if (open) asker.header?.(notEnforcedHeader, open)
      call.keep(() => conversationInput(guard.work.messages))
      return new Generating(model, call, { guard, prepared, outputTokensMax: most })
    } catch (error) {
      for (const one of prepared) one.discard()
      throw error
    }
  }

  private constructor(
    model: Model,
    call: MeteredCall,
    parts: { guard: Guard; prepared: readonly PreparedGeneration[]; outputTokensMax: number },
  ) {
    this.model = model
    this.call = call
    this.#guard = parts.guard
    this.#prepared = parts.prepared
    this.#outputTokensMax = parts.outputTokensMax
    this.#answers = parts.prepared.map(() => new GatheredAnswer())
  }

  /** Runs it up to its first events; throws what keeps it from them. */
  async #begin(signal: AbortSignal): Promise<void> {
    this.#begun = await BegunRuns.start((own) => this.#run(own), signal)
  }

  /** Instead of running it. */
  discard(): void {
    this.#begun?.discard()
    for (const one of this.#prepared) one.discard()
  }

  runs(signal: AbortSignal): AsyncIterable<GenerationEvent>[] {
    return this.#begun?.continue(signal) ?? this.#run(signal)
  }

  #run(signal: AbortSignal): AsyncIterable<GenerationEvent>[] {
    return this.#prepared.map((one, at) => {
      const events = one.run(Math.min(this.#outputTokensMax, one.outputTokensMost), signal)
      const { work } = this.#guard
      const given = this.#guard.output(one.isHandedOn === true ? checked(events, work, signal) : events)
      return this.#answers[at]?.gather(given) ?? given
    })
  }

  /** Resolves when usage, and what is kept of the content, are on record. */
  async succeed(ended: Pick<Outcome, "stopReason" | "toolCalls">): Promise<void> {
    await this.call.succeed(meterUsage(this.usage()), {
      ...ended,
      model: this.model.sku,
      output: () => this.#answers.map((answer) => answer.message()),
    })
  }

  /** The prompt is counted once, however many answers were written to it. */
  usage(): GenerationUsage {
    const used = this.#prepared.map((one) => one.usage())
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
  asker: Asker,
  call: MeteredCall,
  asked: { readonly model: string; readonly work: GenerateWork },
): Promise<number> {
  const tokens = await call.attempt(async () => {
    const resolved = await call.resolve(asked.model, "generation", beginning(asked.work))
    checkSchemas(asked.work)
    return await call.serve(resolved, async ({ model }) => {
      await call.sequence.reserve(model, noUsage)
      const { generator: engine } = await call.route(model)
      const prepared = await engine.prepare(asked.work, asker.request.signal)
      prepared.discard()
      return prepared.inputTokensMost
    })
  })
  await call.succeed(noUsage, { model: asked.model, stopReason: null, toolCalls: [] })
  return tokens
}

/** What the organization's guardrails let the model read; everything else that can be refused is refused before. */
async function guarded(
  { guardrails }: InferenceParts,
  asker: Asker,
  { organizationId, sequence }: MeteredCall,
  { model: { sku: model }, resolved: { virtual }, work, isStreamed }: PreparedFor,
): Promise<Guard> {
  checkSchemas(work)
  const { principal } = asker
  if (!principal) throw new Error("Cannot run inference: the endpoint lets in callers without a principal")
  const { id: requestId, signal, isBatch = false } = asker.request
  const header = (name: string, value: string): void => asker.header?.(name, value)
  const call = { organizationId, principal, requestId, sequence, signal, isBatch, isStreamed, header }
  return await guardrails.begin(call, { model, virtual, work })
}

/** A guardrail may have sent the request to another model. */
async function guardedModel(
  { models }: InferenceParts,
  { organizationId }: MeteredCall,
  { model }: PreparedFor,
  guard: Guard,
): Promise<Model> {
  if (guard.model === model.sku) return model
  return await models.first({ organizationId, name: guard.model, wanted: "generation" })
}

/** How many messages a split is sticky by: the instructions and what the conversation began with. */
const beginningMessages = 2

const beginning = ({ messages }: GenerateWork): string =>
  messages
    .slice(0, beginningMessages)
    .map(({ role, content }) => `${role}\n${content}`)
    .join("\n")

/** A named seed gives each of several answers its own, in a repeatable way. */
function withSeed(work: GenerateWork, index: number): GenerateWork {
  const { seed } = work.sampling
  return seed === null || index === 0 ? work : { ...work, sampling: { ...work.sampling, seed: seed + index } }
}

/** An answer without a limit of its own is as long as can be paid for. */
async function reserve(
  sequence: Sequence,
  model: Model,
  prepared: readonly PreparedGeneration[],
  limitless: boolean,
  timeoutMs: number,
): Promise<number> {
  const inputTokens = Math.max(...prepared.map((one) => one.inputTokensMost))
  let outputTokens = Math.max(...prepared.map((one) => one.outputTokensMost))
  for (let attempt = 1; ; attempt++) {
    try {
      await sequence.reserve(model, {
        inputTokens,
        cachedInputTokens: 0,
        outputTokens: outputTokens * prepared.length,
        executionMs: timeoutMs * prepared.length,
      })
      return outputTokens
    } catch (error) {
      const short = error instanceof Fault && shortCodes.includes(error.code)
      if (!short || !limitless || outputTokens <= 1 || attempt >= affordableAttemptsMax) throw error
      outputTokens = Math.floor(outputTokens / 2)
    }
  }
}
