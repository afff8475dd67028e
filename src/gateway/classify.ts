/** Answers the classification endpoints: decode, find the model, prepare, reserve, run, answer, record. */
import type { Catalog, Model } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import {
  EncodedJson,
  type Call,
  type Handlers,
  type RequestFacts,
  sequenceHeader,
} from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { Table } from "../contract/table.ts"
import type { PreparedScore } from "../engine/engine.ts"
import { type Calibration, calibrateMargins } from "../scoring/calibration.ts"
import { answer } from "./classification/answer.ts"
import type { Classification, Wire } from "./classification/classification.ts"
import { type Decode, createDecode } from "./classification/decode.ts"
import {
  type Meter,
  type Sequence,
  type Usage,
  finishFailed,
  modelNamedIn,
  noUsage,
  success,
} from "./meter.ts"
import { findModel } from "./organization-access.ts"
import { readRoutingHint, regionHeader } from "./routing/plan.ts"
import type { Routed, Router } from "./routing/router.ts"

/** By the name that a request gives in the header `x-umpire-calibration`. */
type Calibrations = Readonly<Record<string, Calibration>>

export interface ClassifyParts {
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
    createDecision: (call) => classify(parts, decode, begin(parts, call, "decisions")),
    createSystemOne: (call) => classify(parts, decode, begin(parts, call, "systemone")),
  }
}

interface DecisionRequest {
  readonly wire: Wire
  readonly call: BytesCall
  /** Empty when the principal has no standing in an organization: then it is refused before it runs. */
  readonly organizationId: string
  /** Whose large bodies are decoded one after the other. */
  readonly owner: string
  readonly sequence: Sequence
}

function begin(parts: ClassifyParts, call: BytesCall, wire: Wire): DecisionRequest {
  const { principal, standing, request } = call
  if (!principal) throw new Error("Cannot classify: the endpoint lets in callers without a principal")
  const organizationId = standing?.organizationId ?? null
  const sequence = parts.meter.begin({
    callSource: wire,
    inferenceType: "generation",
    principal,
    organizationId,
    request,
  })
  call.header(sequenceHeader, sequence.id)
  return {
    wire,
    call,
    organizationId: organizationId ?? "",
    owner: organizationId ?? principal.id,
    sequence,
  }
}

/** The sequence is finished once, however the request ends, and an answer leaves only after its record is written. */
async function classify(parts: ClassifyParts, decode: Decode, asked: DecisionRequest): Promise<EncodedJson> {
  const { wire, call, owner, sequence } = asked
  try {
    const classification = await decode(wire, call.body, owner, call.request.signal).catch(
      (error: unknown) => {
        sequence.name(modelNamedIn(call.body))
        throw error
      },
    )
    sequence.name(classification.model)
    const model = findModel(parts.catalog, classification.model, "decisions")
    const calibration = readCalibration(call.request, parts.calibrations)
    const { margins, usage } = await score(parts, asked, model, classification)
    const calibrated = calibration ? calibrateMargins(margins, calibration) : margins
    const text = answer(classification, calibrated, usage.inputTokens)
    await sequence.finish(usage, success)
    return new EncodedJson(text)
  } catch (error) {
    await finishFailed(sequence, noUsage, error)
    throw error
  }
}

interface Scored {
  readonly margins: Float64Array
  readonly usage: Usage
}

async function score(
  { router, clock, timeoutMs }: ClassifyParts,
  { call, organizationId, sequence }: DecisionRequest,
  model: Model,
  { evidence, branches }: Classification,
): Promise<Scored> {
  const { signal } = call.request
  const routed: Routed = await router.open({
    model: model.sku,
    organizationId,
    hint: readRoutingHint(call.request),
    onPlaced: (region) => {
      sequence.placed(region)
      call.header(regionHeader, region)
    },
  })
  let prepared: PreparedScore | null = null
  try {
    // Nothing asked: no answers and zero usage (decisions accepts an empty list).
    if (branches.length === 0) {
      await sequence.reserve(model, noUsage)
      return { margins: new Float64Array(), usage: noUsage }
    }
    prepared = await routed.scorer.prepare({ organizationId, evidence, branches }, signal)
    // Nothing is evaluated before what it costs is reserved; that is known exactly once the texts are tokens.
    const { inputTokens } = prepared
    await sequence.reserve(model, { ...noUsage, inputTokens, executionMs: timeoutMs })
    const running = prepared
    prepared = null
    const startedMs = clock.monotonicMs()
    const margins = await running.run(signal)
    // Read after it ran: some workers say how many tokens they read only with their answer.
    const used = { inputTokens: running.inputTokens, executionMs: clock.monotonicMs() - startedMs }
    return { margins, usage: { ...noUsage, ...used } }
  } finally {
    prepared?.discard()
    routed.close()
  }
}

const calibrationHeader = "x-umpire-calibration"

/** The calibration that the request names; null leaves the model's own probabilities, as the contract says. */
function readCalibration(request: RequestFacts, calibrations: Calibrations): Calibration | null {
  const name = request.header(calibrationHeader)
  if (name === null) return null
  const found = Object.hasOwn(calibrations, name) ? calibrations[name] : undefined
  if (!found)
    throw new Fault(
      "invalid_request",
      `Cannot calibrate: ${calibrationHeader} names no entry of calibrations in the configuration`,
      { param: calibrationHeader },
    )
  return found
}
