/** Answers the classification endpoints: decode, find the model, prepare, reserve, run, answer, record. */
import { type Ticks, usdText } from "../base/money.ts"
import type { Principal } from "../contract/access.ts"
import {
  type Call,
  EncodedJson,
  type Handlers,
  type RequestFacts,
  costHeader,
  sequenceHeader,
} from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import type { Table } from "../contract/table.ts"
import type { ScoreWork } from "../engine/engine.ts"
import { type Compatibility, type Decode, answer, createDecode } from "./classification/wire.ts"
import {
  type Classification,
  type Question,
  type Wire,
  parseSetReference,
} from "./classification/classification.ts"
import { lowestConfidence } from "./classification/confidence.ts"
import { askedContent, plainEnd, setEnd } from "./content/classification.ts"
import type { ContentKeeper, PendingContent } from "./content/keeper.ts"
import { type Meter, type Sequence, finishFailed, modelNamedIn, success, tagByHeader } from "./meter.ts"
import { type Usage, noUsage } from "./sequence-record.ts"
import type { AnswerCounter, CountedRequest } from "./monitoring/answer-counter.ts"
import { readRoutingHint, regionHeader } from "./routing/plan.ts"
import { type ModelResolver, type Resolved, stickyKey } from "./organization-access.ts"
import { countAbstained, describeSet, setVerdictHeaders } from "./question-sets/decide.ts"
import type { Sets } from "./question-sets/sets.ts"
import type { AnsweredRequest, Shadows } from "./question-sets/shadow.ts"
import { selectQuestions } from "./question-sets/version.ts"
import {
  type StageReader,
  type StagedAnswers,
  type ScoreParts,
  joinMargins,
  plainReader,
  scoreStages,
  setReader,
} from "./stages.ts"
import type { Tags } from "./tags.ts"

export interface ClassifyParts extends ScoreParts {
  readonly models: Pick<ModelResolver, "resolve">
  readonly meter: Meter
  readonly compatibility: Compatibility
  readonly sets: Pick<Sets, "find">
  readonly shadows: Pick<Shadows, "observe">
  readonly content: ContentKeeper
  readonly answerCounter: Pick<AnswerCounter, "count">
}

type ClassificationHandlers = Pick<Handlers<Table>, "createDecision" | "createSystemOne">
type BytesCall = Call<unknown, unknown, Uint8Array>

export function classificationHandlers(parts: ClassifyParts): ClassificationHandlers {
  const decode = createDecode(parts.compatibility)
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

interface TaggedRequest extends DecisionRequest {
  readonly tags: Tags
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
    const tags = tagByHeader(sequence, call.request, call.body)
    const classification = await decode(wire, call.body, owner, call.request.signal).catch(
      (error: unknown) => {
        sequence.name(modelNamedIn(call.body))
        throw error
      },
    )
    sequence.name(classification.model)
    refuseCalibration(call.request)
    const { text, usage, costTicks, observed, counted, keep } = classification.questionNames
      ? await askSet(parts, { ...asked, tags }, classification)
      : await askModel(parts, { ...asked, tags }, classification)
    const [isKept] = await Promise.all([keep(), sequence.finish(usage, success)])
    call.header(costHeader, usdText(costTicks))
    if (counted) parts.answerCounter.count(counted)
    if (observed) parts.shadows.observe({ ...observed, isKept })
    return new EncodedJson(text)
  } catch (error) {
    await finishFailed(sequence, noUsage, error)
    call.header(sequenceHeader, sequence.id)
    throw error
  }
}

interface Answered {
  readonly text: string
  readonly usage: Usage
  /** Of all stages. */
  readonly costTicks: Ticks
  /** What a shadow of the set is told once the request is recorded. */
  readonly observed?: Omit<AnsweredRequest, "isKept">
  /** Keeps its content; never rejects, and returns whether evidence is kept. */
  readonly keep: () => Promise<boolean>
  readonly counted?: CountedRequest
}

async function askModel(
  parts: ClassifyParts,
  asked: TaggedRequest,
  classification: Classification,
): Promise<Answered> {
  const resolved = await resolveFor(parts, asked, classification.model, classification.evidence)
  asked.sequence.describe({ questions: classification.questions.length })
  const content = beginContent(parts, asked, classification)
  const reader = plainReader(classification.questions)
  const { answers, usage, model, costTicks } = await scoreFor(parts, asked, resolved, classification, reader)
  const margins = joinMargins(answers)
  traceConfidence(asked.sequence, classification.questions, margins)
  return {
    text: answer(classification, margins, usage.inputTokens),
    usage,
    costTicks,
    keep: () => content.finish(() => plainEnd(model.sku, classification.questions, margins)),
  }
}

/** The answers are the contract's; where the set abstains, a header names the question. */
async function askSet(
  parts: ClassifyParts,
  asked: TaggedRequest,
  request: Classification,
): Promise<Answered> {
  const { call, organizationId } = asked
  if (organizationId === "")
    throw new Fault("permission_denied", "Cannot run the request: it is for no organization")
  const found = await parts.sets.find(organizationId, parseSetReference(request.model))
  const { version } = found
  const { classification, questions, reading } = selectQuestions(version, request)
  describeSet(asked.sequence, version, questions.length)
  const resolved = await resolveFor(parts, asked, version.model, classification.evidence)
  const content = beginContent(parts, asked, classification)
  const reader = setReader(questions, resolved, version)
  const scored = await scoreFor(parts, asked, resolved, classification, reader, reading)
  const margins = joinMargins(scored.answers)
  const verdicts = scored.answers.map(({ verdict }) => verdict)
  asked.sequence.describe({ abstained: countAbstained(verdicts) })
  traceConfidence(asked.sequence, classification.questions, margins)
  const text = answer(classification, margins, scored.usage.inputTokens)
  setVerdictHeaders(call, version, verdicts)
  const { principal, sequence } = asked
  const { evidence } = classification
  const key = stickyKey(call.request, evidence)
  const observed = { found, organizationId, principal, sequenceId: sequence.id, evidence, key, verdicts }
  const keep = (): Promise<boolean> => content.finish(() => setEnd({ ...observed, questions }))
  const { startedMs } = call.request
  const { usage, costTicks } = scored
  const counted = { version, verdicts, startedMs, costTicks }
  return { text, usage, costTicks, observed, counted, keep }
}

/** Worked out only where somebody looks at it. */
function traceConfidence(
  { trace: { span } }: Sequence,
  questions: readonly Question[],
  margins: Float64Array,
): void {
  span?.set({ "umpire.decision.confidence": lowestConfidence(questions, margins) })
}

function beginContent(
  { content }: ClassifyParts,
  { wire, call, organizationId, principal, sequence, tags }: TaggedRequest,
  classification: Classification,
): PendingContent {
  return content.begin({
    seqId: sequence.id,
    organizationId,
    principal,
    endpoint: wire,
    startedMs: call.request.startedMs,
    tags,
    span: sequence.trace.span,
    asked: () => askedContent(classification),
  })
}

function resolveFor(
  { models }: ClassifyParts,
  { call, organizationId }: DecisionRequest,
  name: string,
  evidence: string,
): Promise<Resolved> {
  const key = stickyKey(call.request, evidence)
  return models.resolve({ organizationId, name, wanted: "decisions", key })
}

function scoreFor<Answer>(
  parts: ClassifyParts,
  { call, organizationId, sequence }: DecisionRequest,
  resolved: Resolved,
  { evidence, questions, branches }: Classification,
  reader: StageReader<Answer>,
  reading?: ScoreWork["reading"],
): Promise<StagedAnswers<Answer>> {
  const request = {
    resolved,
    organizationId,
    evidence,
    questions,
    branches,
    startedMs: call.request.startedMs,
    header: (name: string, value: string) => call.header(name, value),
    reading,
    sequence,
    hint: readRoutingHint(call.request),
    isBatch: call.request.isBatch === true,
    onPlaced: (region: string) => call.header(regionHeader, region),
    isCharged: true,
  }
  return scoreStages(parts, request, reader, call.request.signal)
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
