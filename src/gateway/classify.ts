/** Answers the classification endpoints: decode, find the model, prepare, run, read the answers. */
import type { Catalog, Model } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { Soon } from "../base/soon.ts"
import { EncodedJson, type Call, type Handlers, sequenceHeader } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { Table } from "../contract/table.ts"
import { type Calibrations, calibrated, readCalibration } from "./calibrated.ts"
import { answer } from "./classification/answer.ts"
import type { Classification, Wire } from "./classification/classification.ts"
import { type Decode, createDecode } from "./classification/decode.ts"
import { type Meter, type Sequence, type Usage, failureOf, noUsage, success } from "./meter.ts"
import { readRoutingHint, regionHeader } from "./routing-hint.ts"
import type { Routed, Router } from "./routing/router.ts"

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
    createDecision: async (call) => await metered(parts, call, "decisions", decode),
    createSystemOne: async (call) => await metered(parts, call, "systemone", decode),
  }
}

/** However the request ends, its sequence is finished once; an answer leaves only after its record is written. */
async function metered(
  parts: ClassifyParts,
  call: BytesCall,
  wire: Wire,
  decode: Decode,
): Promise<EncodedJson> {
  const { principal, standing, request, body } = call
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
  try {
    const owner = organizationId ?? principal.id
    const decoding = decode(wire, body, owner, request.signal)
    const classification = decoding instanceof Promise ? await decoding : decoding
    sequence.name(classification.model)
    const { text, usage } = await classify(parts, call, classification, sequence)
    await sequence.finish(usage, success)
    return new EncodedJson(text)
  } catch (error) {
    // Where even this cannot be recorded, the caller gets the first error; the journal refuses new requests by then.
    await sequence.finish(noUsage, failureOf(error)).catch(() => undefined)
    throw error
  }
}

async function classify(
  parts: ClassifyParts,
  call: BytesCall,
  classification: Classification,
  sequence: Sequence,
): Promise<{ text: string; usage: Usage }> {
  const model = findModel(parts.catalog, classification.model)
  const calibration = readCalibration(call.request, parts.calibrations)
  const opened = openRoute(parts, call, model, sequence)
  const routed = opened instanceof Promise ? await opened : opened
  try {
    const { margins, usage } = await score(parts, call, classification, { model, sequence, routed })
    return { text: answer(classification, calibrated(margins, calibration), usage.inputTokens), usage }
  } finally {
    routed.close()
  }
}

function openRoute(
  { router }: ClassifyParts,
  call: BytesCall,
  model: Model,
  sequence: Sequence,
): Soon<Routed> {
  return router.open({
    model: model.sku,
    organizationId: call.standing?.organizationId ?? "",
    hint: readRoutingHint(call.request),
    onPlaced: (region) => {
      sequence.placed(region)
      call.header(regionHeader, region)
    },
  })
}

/** Nothing is evaluated before what it costs is reserved; that is known exactly once the texts are tokens. */
async function score(
  parts: ClassifyParts,
  call: BytesCall,
  { evidence, branches }: Classification,
  {
    model,
    sequence,
    routed,
  }: { readonly model: Model; readonly sequence: Sequence; readonly routed: Routed },
): Promise<{ margins: Float64Array; usage: Usage }> {
  if (branches.length === 0) {
    // Nothing asked: no answers and zero usage (decisions accepts an empty list).
    await sequence.reserve(model, noUsage)
    return { margins: new Float64Array(), usage: noUsage }
  }
  const { signal } = call.request
  const organizationId = call.standing?.organizationId ?? ""
  const prepared = await routed.scorer.prepare({ organizationId, evidence, branches }, signal)
  try {
    const most = { ...noUsage, inputTokens: prepared.inputTokens, executionMs: parts.timeoutMs }
    const reserving = sequence.reserve(model, most)
    if (reserving) await reserving
  } catch (error) {
    prepared.discard()
    throw error
  }
  const startedMs = parts.clock.monotonicMs()
  const margins = await prepared.run(signal)
  const executionMs = parts.clock.monotonicMs() - startedMs
  // Read now: some workers say how many tokens they read only with their answer.
  return { margins, usage: { ...noUsage, inputTokens: prepared.inputTokens, executionMs } }
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
