/** Answers the classification endpoints: decode, find the model, prepare, reserve, run, answer, record. */
import type { Catalog, Model } from "../base/catalog.ts"
import type { Principal } from "../contract/access.ts"
import {
  type Call,
  EncodedJson,
  type Handlers,
  type RequestFacts,
  sequenceHeader,
} from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { Table } from "../contract/table.ts"
import type { ScoreWork } from "../engine/engine.ts"
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
import { setVerdictHeaders } from "./question-sets/decide.ts"
import { parseSetReference } from "./question-sets/reference.ts"
import type { Sets } from "./question-sets/sets.ts"
import type { Shadows } from "./question-sets/shadow.ts"
import { answerSet, selectQuestions } from "./question-sets/version.ts"
import { type ScoreParts, type Scored, score } from "./score.ts"

export interface ClassifyParts extends ScoreParts {
  readonly catalog: Catalog
  readonly meter: Meter
  readonly nullDescriptions: boolean
  readonly sets: Pick<Sets, "find">
  readonly shadows: Pick<Shadows, "observe">
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
  readonly principal: Principal
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
    principal,
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
    refuseCalibration(call.request)
    const { text, usage } = classification.questionNames
      ? await askSet(parts, asked, classification)
      : await askModel(parts, asked, classification)
    await sequence.finish(usage, success)
    return new EncodedJson(text)
  } catch (error) {
    await finishFailed(sequence, noUsage, error)
    throw error
  }
}

interface Answered {
  readonly text: string
  readonly usage: Usage
}

async function askModel(
  parts: ClassifyParts,
  asked: DecisionRequest,
  classification: Classification,
): Promise<Answered> {
  const model = findModel(parts.catalog, classification.model, "decisions")
  const { margins, usage } = await scoreFor(parts, asked, model, classification)
  return { text: answer(classification, margins, usage.inputTokens), usage }
}

/** The answers are the contract's; where the set abstains, a header names the question. */
async function askSet(
  parts: ClassifyParts,
  asked: DecisionRequest,
  request: Classification,
): Promise<Answered> {
  const { call, organizationId } = asked
  if (organizationId === "")
    throw new Fault("permission_denied", "Cannot run the request: it is for no organization")
  const found = await parts.sets.find(organizationId, parseSetReference(request.model))
  const { version } = found
  const { classification, questions, reading } = selectQuestions(version, request)
  const model = findModel(parts.catalog, version.model, "decisions")
  const scored = await scoreFor(parts, asked, model, classification, reading)
  const { margins, verdicts } = answerSet(questions, scored.margins, scored.reading)
  const text = answer(classification, margins, scored.usage.inputTokens)
  setVerdictHeaders(call, version, verdicts)
  const { principal, sequence } = asked
  const { evidence } = classification
  parts.shadows.observe({ found, organizationId, principal, sequenceId: sequence.id, evidence, verdicts })
  return { text, usage: scored.usage }
}

async function scoreFor(
  parts: ClassifyParts,
  { call, organizationId, sequence }: DecisionRequest,
  model: Model,
  { evidence, branches }: Classification,
  reading?: ScoreWork["reading"],
): Promise<Scored> {
  const request = {
    model,
    organizationId,
    evidence,
    branches,
    ...(reading ? { reading } : {}),
    sequence,
    hint: readRoutingHint(call.request),
    onPlaced: (region: string) => call.header(regionHeader, region),
    isCharged: true,
  }
  return await score(parts, request, call.request.signal)
}

const calibrationHeader = "x-umpire-calibration"

/** A client that still sends it would take uncalibrated answers for calibrated ones. */
function refuseCalibration(request: RequestFacts): void {
  if (request.header(calibrationHeader) === null) return
  throw new Fault(
    "invalid_request",
    `Cannot calibrate: ${calibrationHeader} is no longer read; name the question set as the model, as in set:NAME`,
    { param: calibrationHeader },
  )
}
