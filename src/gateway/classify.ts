/** Answers the classification endpoints: decode, find the model, prepare, run, read the answers. */
import type { Catalog, Model } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { Soon } from "../base/soon.ts"
import { EncodedJson, type Call, type Handlers, sequenceHeader } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { Table } from "../contract/table.ts"
import type { PreparedScore } from "../engine/engine.ts"
import type { Calibration } from "../scoring/calibration.ts"
import { type Calibrations, calibrated, readCalibration } from "./calibrated.ts"
import { answer } from "./classification/answer.ts"
import type { Classification, Wire } from "./classification/classification.ts"
import { type Decode, createDecode } from "./classification/decode.ts"
import { type Meter, type Sequence, type Usage, finishFailed, noUsage, success } from "./meter.ts"
import { readRoutingHint, regionHeader } from "./routing-hint.ts"
import type { Routed, Router } from "./routing/router.ts"

interface ClassifyParts {
  readonly catalog: Catalog
  readonly router: Pick<Router, "open">
  readonly meter: Meter
  readonly clock: Clock
  /** The deadline of a request: the longest that a model can work on one. */
  readonly timeoutMs: number
  readonly nullDescriptions: boolean
  readonly calibrations: Calibrations
}

type ClassificationHandlers = Pick<Handlers<Table>, "createDecision" | "createSystemOne">
type BytesCall = Call<unknown, unknown, Uint8Array>

export function classificationHandlers(parts: ClassifyParts): ClassificationHandlers {
  const decode = createDecode({ nullDescriptions: parts.nullDescriptions })
  return {
    createDecision: (call) => new Asked(parts, call, "decisions").answer(decode),
    createSystemOne: (call) => new Asked(parts, call, "systemone").answer(decode),
  }
}

/**
 * One request. Its sequence is finished once, however it ends, and an answer leaves only after its record is written.
 *
 * What it knows is in its fields and it waits in one function: a function that waits keeps all that it works with, and
 * a chain of them would be much of what a short request costs.
 */
class Asked {
  readonly #parts: ClassifyParts
  readonly #call: BytesCall
  readonly #wire: Wire
  readonly #owner: string
  readonly #organizationId: string
  readonly #sequence: Sequence
  #model: Model | null = null
  #calibration: Calibration | null = null
  #routed: Routed | null = null
  /** Until it runs. */
  #prepared: PreparedScore | null = null

  constructor(parts: ClassifyParts, call: BytesCall, wire: Wire) {
    const { principal, standing, request } = call
    if (!principal) throw new Error("Cannot classify: the endpoint lets in callers without a principal")
    const organizationId = standing?.organizationId ?? null
    this.#parts = parts
    this.#call = call
    this.#wire = wire
    this.#owner = organizationId ?? principal.id
    this.#organizationId = organizationId ?? ""
    this.#sequence = parts.meter.begin({
      callSource: wire,
      inferenceType: "generation",
      principal,
      organizationId,
      request,
    })
    call.header(sequenceHeader, this.#sequence.id)
  }

  async answer(decode: Decode): Promise<EncodedJson> {
    const { body, request } = this.#call
    try {
      const decoding = decode(this.#wire, body, this.#owner, request.signal)
      const classification = decoding instanceof Promise ? await decoding : decoding
      const opening = this.#open(classification)
      this.#routed = opening instanceof Promise ? await opening : opening
      const prepared = await this.#prepare(this.#routed, classification)
      const reserving = this.#reserve(prepared)
      if (reserving) await reserving
      const startedMs = this.#parts.clock.monotonicMs()
      const margins = await this.#run(prepared)
      const usage = this.#used(prepared, startedMs)
      const text = answer(classification, calibrated(margins, this.#calibration), usage.inputTokens)
      this.#routed.close()
      await this.#sequence.finish(usage, success)
      return new EncodedJson(text)
    } catch (error) {
      this.#leave()
      await finishFailed(this.#sequence, noUsage, error)
      throw error
    }
  }

  #open({ model: sku }: Classification): Soon<Routed> {
    const { catalog, calibrations, router } = this.#parts
    const call = this.#call
    this.#sequence.name(sku)
    const model = findModel(catalog, sku)
    this.#model = model
    this.#calibration = readCalibration(call.request, calibrations)
    return router.open({
      model: model.sku,
      organizationId: this.#organizationId,
      hint: readRoutingHint(call.request),
      onPlaced: (region) => {
        this.#sequence.placed(region)
        call.header(regionHeader, region)
      },
    })
  }

  #prepare(routed: Routed, { evidence, branches }: Classification): Soon<PreparedScore> {
    // Nothing asked: no answers and zero usage (decisions accepts an empty list).
    if (branches.length === 0) return nothingAsked
    const work = { organizationId: this.#organizationId, evidence, branches }
    return routed.scorer.prepare(work, this.#call.request.signal)
  }

  /** Nothing is evaluated before what it costs is reserved; that is known exactly once the texts are tokens. */
  #reserve(prepared: PreparedScore): Soon<void> {
    if (!this.#model) throw new Error("Cannot reserve: the model is not known")
    this.#prepared = prepared
    const { inputTokens } = prepared
    const executionMs = prepared === nothingAsked ? 0 : this.#parts.timeoutMs
    return this.#sequence.reserve(this.#model, { ...noUsage, inputTokens, executionMs })
  }

  #run(prepared: PreparedScore): Promise<Float64Array> {
    this.#prepared = null
    return prepared.run(this.#call.request.signal)
  }

  /** Read after it ran: some workers say how many tokens they read only with their answer. */
  #used(prepared: PreparedScore, startedMs: number): Usage {
    if (prepared === nothingAsked) return noUsage
    const executionMs = this.#parts.clock.monotonicMs() - startedMs
    return { ...noUsage, inputTokens: prepared.inputTokens, executionMs }
  }

  #leave(): void {
    this.#prepared?.discard()
    this.#routed?.close()
  }
}

const nothingAsked: PreparedScore = {
  inputTokens: 0,
  run: async () => new Float64Array(),
  discard: () => undefined,
}

function findModel(catalog: Catalog, sku: string): Model {
  const model = catalog.find(sku)
  if (!model)
    throw new Fault(
      "unknown_model",
      `Cannot classify: no model ${JSON.stringify(sku)} is in the catalog; ${catalog.fallback.sku} is`,
      { param: "model" },
    )
  if (!model.enabled)
    throw new Fault("model_disabled", `Cannot classify: the model ${sku} is switched off`, { param: "model" })
  if (model.kind !== "generation")
    throw new Fault(
      "unknown_model",
      `Cannot classify: the model ${sku} makes embeddings; a generation model is needed`,
      { param: "model" },
    )
  return model
}
