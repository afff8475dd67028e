/** What every inference handler does around its work: find the model, reserve, run, and record how it ended. */
import type { Catalog, Model } from "../../base/catalog.ts"
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
} from "../../engine/generate/generate.ts"
import {
  type CallSource,
  type Meter,
  type Outcome,
  type Sequence,
  type Usage,
  finishFailed,
  noUsage,
} from "../meter.ts"
import { findModel } from "../organization-access.ts"
import { checked } from "./answer-check.ts"
import { checkSchemas, notEnforcedHeader, notEnforcedValue } from "./schemas.ts"
import { readRoutingHint, regionHeader } from "../routing/plan.ts"
import type { BodyReader, RequestOf, Wire } from "./body.ts"
import type { Routed, Router } from "../routing/router.ts"

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
  readonly router: Pick<Router, "open">
  readonly meter: Meter
  readonly clock: Clock
  readonly ids: Ids
  /** The deadline of a request: the longest that a model can work on one. */
  readonly timeoutMs: number
  readonly readBody: BodyReader
}

/** An open request: its sequence is finished once, however it ends, and its place at a worker is given back. */
export class MeteredCall {
  readonly sequence: Sequence
  readonly organizationId: string
  readonly #parts: InferenceParts
  readonly #asker: Asker
  #routed: Routed | null = null

  constructor(parts: InferenceParts, asker: Asker, callSource: CallSource) {
    const { principal, standing, request } = asker
    if (!principal || !standing)
      throw new Error("Cannot run inference: the endpoint lets in callers without a standing")
    this.#parts = parts
    this.#asker = asker
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
    const { signal } = this.#asker.request
    return await this.attempt(
      async () => await this.#parts.readBody(wire, bytes, { organizationId, signal, sequence }),
    )
  }

  /** Finds the engines that may run the model for this organization. */
  async route(model: Model): Promise<Routed> {
    const { request } = this.#asker
    this.#routed = await this.#parts.router.open({
      model: model.sku,
      organizationId: this.organizationId,
      hint: readRoutingHint(request),
      onPlaced: (region) => {
        this.sequence.placed(region)
        this.#asker.header?.(regionHeader, region)
      },
    })
    return this.#routed
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

  async succeed(usage: Usage, ended: Pick<Outcome, "stopReason" | "toolCalls">): Promise<void> {
    this.#routed?.close()
    await this.sequence.finish(usage, {
      result: "success",
      errorCode: null,
      errorMessage: null,
      region: null,
      ...ended,
    })
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

/** Several answers to one prompt, prepared and paid for. */
export class Generating {
  readonly model: Model
  readonly call: MeteredCall
  readonly #work: GenerateWork
  readonly #prepared: readonly PreparedGeneration[]
  readonly #outputTokensMax: number

  static async start(
    parts: InferenceParts,
    asker: Asker,
    call: MeteredCall,
    asked: { readonly model: string; readonly work: GenerateWork; readonly count: number },
  ): Promise<Generating> {
    return await call.attempt(async () => {
      const model = findModel(parts.catalog, asked.model, "generation")
      const { signal } = asker.request
      checkSchemas(asked.work)
      const { generator: engine } = await call.route(model)
      const prepared: PreparedGeneration[] = []
      try {
        for (let index = 0; index < asked.count; index++)
          prepared.push(await engine.prepare(withSeed(asked.work, index), signal))
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
        return new Generating(model, call, { work: asked.work, prepared, outputTokensMax: most })
      } catch (error) {
        for (const one of prepared) one.discard()
        throw error
      }
    })
  }

  private constructor(
    model: Model,
    call: MeteredCall,
    parts: { work: GenerateWork; prepared: readonly PreparedGeneration[]; outputTokensMax: number },
  ) {
    this.model = model
    this.call = call
    this.#work = parts.work
    this.#prepared = parts.prepared
    this.#outputTokensMax = parts.outputTokensMax
  }

  /** Instead of running it. */
  discard(): void {
    for (const one of this.#prepared) one.discard()
  }

  runs(signal: AbortSignal): AsyncIterable<GenerationEvent>[] {
    return this.#prepared.map((one) => {
      const events = one.run(Math.min(this.#outputTokensMax, one.outputTokensMost), signal)
      return one.isHandedOn === true ? checked(events, this.#work, signal) : events
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
      const short =
        error instanceof Fault &&
        (error.code === "insufficient_credits" || error.code === "spend_limit_exceeded")
      if (!short || !limitless || outputTokens <= 1 || attempt >= affordableAttemptsMax) throw error
      outputTokens = Math.floor(outputTokens / 2)
    }
  }
}
