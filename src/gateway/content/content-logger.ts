/**
 * Content logging of answered requests: decides by settings and sample, redacts beside the engine's work, encrypts, and
 * appends to a journal of its own at the same time as usage is recorded. A request never fails for it and waits only for the
 * append; what cannot be kept is counted.
 */
import { createHash } from "node:crypto"
import type { Clock } from "../../base/clock.ts"
import type { NamedPattern } from "../../base/redaction.ts"
import type { Span } from "../../base/telemetry.ts"
import type { Principal } from "../../contract/access.ts"
import {
  type ContentAnswer,
  type ContentInput,
  type ContentLevel,
  type ContentMessage,
  type ContentQuestion,
  contentLimits,
  defaultContentSettings,
} from "../../contract/content.ts"
import type { ContentCipher } from "../../store/content/cipher.ts"
import type { ContentBody } from "../../store/content/content.ts"
import { rowHash } from "../../scoring/teach/row-hash.ts"
import type { ContentRecord, ReviewRequest } from "../../store/content/journal.ts"
import type { Journal } from "../../store/journal/journal.ts"
import type { Organizations, OrganizationSnapshot } from "../../store/organization-snapshot.ts"
import { StoreUnavailable } from "../../store/sql.ts"
import type { Tags } from "../../contract/tags.ts"
import type { DropReason, DroppedCounts } from "./dropped.ts"
import { type Redaction, changeInput, changeMessage, textsIn } from "./redactor.ts"

/** The request, known before it runs. */
export interface ContentStart {
  readonly seqId: string
  readonly organizationId: string
  readonly principal: Principal
  /** Unix milliseconds at which the request began. */
  readonly startedMs: number
  readonly endpoint: string
  /** The caller's own; by the one called `reference` its content can be deleted. */
  readonly tags: Tags
  /** Of the request, where it is traced. */
  readonly span?: Span | undefined
  /** What is asked: asked for only when something is kept, as is the answer. */
  readonly asked: () => AskedContent
}

/** A decision has evidence and questions, everything else an input. */
export interface AskedContent {
  readonly evidence: string | null
  readonly questions: readonly ContentQuestion[]
  readonly input: ContentInput | null
}

/** The answer. */
export interface ContentEnd {
  readonly model: string
  readonly questionSet: ContentBody["question_set"]
  readonly answers: readonly ContentAnswer[]
  readonly review: ReviewRequest | null
  /** What was generated; null where nothing is. */
  readonly output: readonly ContentMessage[] | null
}

export interface PendingContent {
  /** Resolves when the content is in the journal, or is not kept; never rejects. Answers whether evidence is kept. */
  finish(end: () => ContentEnd): Promise<boolean>
}

export interface ContentLogger {
  /** Begins what can be done before the answer is known. */
  begin(start: ContentStart): PendingContent
}

export interface ContentLoggerDeps {
  readonly plans: Pick<ContentPlans, "of">
  readonly cipher: ContentCipher
  readonly journal: Pick<Journal<ContentRecord>, "append" | "checkRoom">
  readonly redaction: Pick<Redaction, "run">
  readonly dropped: DroppedCounts
  /** False when the disk is nearly full: what is left is for usage. */
  readonly hasDiskSpace: (bytes: number) => boolean
}

const dayMs = 24 * 3_600_000
/** Of records that wait to be written. */
const bytesInFlightMax = 64 * 1024 * 1024

class Dropped extends Error {
  readonly reason: DropReason

  constructor(reason: DropReason, cause?: unknown) {
    super(`Content was not kept: ${reason}`, { cause })
    this.reason = reason
  }
}

export function createContentLogger(deps: ContentLoggerDeps): ContentLogger {
  const inFlight = { bytes: 0 }
  return {
    begin(start) {
      const prepared = prepare(deps, start)
      // Awaited in `finish`; a request that fails before it is not kept, and its failure is not reported.
      prepared.catch(() => undefined)
      return {
        async finish(end) {
          try {
            const content = await prepared
            if (!content) return false
            const ended = end()
            const keepsEvidence = content.plan.keep === "evidence_and_answers"
            // The answer of an embedding has no text.
            if (!keepsEvidence && ended.answers.length === 0 && ended.output === null) return false
            await redactTexts(deps, content, textsIn(null, ended.output))
            await write(deps, inFlight, recordOf(deps.cipher, content, ended))
            return keepsEvidence
          } catch (error) {
            deps.dropped.add(start.organizationId, error instanceof Dropped ? error.reason : "journal")
            return false
          }
        },
      }
    },
  }
}

interface PreparedContent {
  readonly plan: ContentPlan
  readonly start: ContentStart
  readonly asked: AskedContent
  /** Texts as they are stored. */
  readonly redacted: Map<string, string>
  redactions: number
}

/** Null when nothing is to be kept. */
async function prepare(deps: ContentLoggerDeps, start: ContentStart): Promise<PreparedContent | null> {
  const { plans, cipher } = deps
  const { organizationId, principal, seqId } = start
  if (!cipher.isAvailable) return null
  const plan = await plans
    .of(organizationId, principal.kind === "key" ? principal.id : null)
    .catch((cause: unknown) => {
      throw new Dropped("settings", cause)
    })
  if (plan.keep === "nothing" || !isSampled("content", seqId, plan.sampleRate)) return null
  const asked = start.asked()
  const content: PreparedContent = { plan, start, asked, redacted: new Map(), redactions: 0 }
  await redactTexts(deps, content, textsOf(asked, plan))
  return content
}

/** Every text that is stored of what is asked, each once. */
function textsOf({ evidence, questions, input }: AskedContent, plan: ContentPlan): string[] {
  const keepsEvidence = plan.keep === "evidence_and_answers"
  const texts = new Set(keepsEvidence ? textsIn(input, null) : [])
  if (keepsEvidence && evidence !== null) texts.add(evidence)
  for (const { name, instructions, options } of questions) {
    texts.add(name ?? "")
    texts.add(instructions)
    for (const { value, description } of options) {
      if (typeof value === "string") texts.add(value)
      texts.add(description)
    }
  }
  return [...texts]
}

async function redactTexts(
  { redaction }: ContentLoggerDeps,
  content: PreparedContent,
  texts: readonly string[],
): Promise<void> {
  const { plan, start, redacted } = content
  if (plan.patterns.length === 0 || texts.length === 0) return
  const done = await redaction.run(start.organizationId, plan.patterns, texts).catch((cause: unknown) => {
    throw new Dropped("redaction", cause)
  })
  texts.forEach((text, at) => redacted.set(text, done.texts[at] ?? ""))
  content.redactions += done.count
}

/** Not those of options: a predicate's and an abstention's. */
const ownVerdicts: readonly unknown[] = ["yes", "no"]

function recordOf(cipher: ContentCipher, content: PreparedContent, end: ContentEnd): ContentRecord {
  const { plan, start, asked, redacted, redactions } = content
  const { seqId, organizationId, principal, startedMs, tags } = start
  const reference = tags["reference"] ?? null
  const keepsEvidence = plan.keep === "evidence_and_answers"
  const redact = (text: string): string => {
    if (plan.patterns.length === 0) return text
    const found = redacted.get(text)
    // A text that was not redacted must not be stored.
    if (found === undefined) throw new Dropped("redaction")
    return found
  }
  const redactValue = <Value>(value: Value): Value | string =>
    typeof value === "string" && !ownVerdicts.includes(value) ? redact(value) : value
  // Those of a question set are its own, and reviews find their question by them.
  const redactName = (name: string | null): string | null =>
    name === null || end.questionSet ? name : redact(name)
  const body: ContentBody = {
    endpoint: start.endpoint,
    model: end.model,
    question_set: end.questionSet,
    reference,
    evidence: keepsEvidence && asked.evidence !== null ? redact(asked.evidence) : null,
    questions: asked.questions.map((question) => ({
      ...question,
      name: redactName(question.name),
      instructions: redact(question.instructions),
      options: question.options.map(({ value, description }) => ({
        value: redactValue(value),
        description: redact(description),
      })),
    })),
    answers: end.answers.map((answer) => ({
      ...answer,
      name: redactName(answer.name),
      verdict: redactValue(answer.verdict),
    })),
    input: keepsEvidence && asked.input ? changeInput(asked.input, redact) : null,
    output: end.output && end.output.map((message) => changeMessage(message, redact)),
    redactions,
  }
  const text = JSON.stringify(body)
  if (Buffer.byteLength(text) > contentLimits.recordBytesMax) throw new Dropped("too_large")
  const { evidence } = body
  const isHashed = evidence !== null && end.questionSet !== null && plan.questionSet === null
  const hashes = reference === null ? [] : cipher.referenceHashes(organizationId, reference)
  return {
    seq_id: seqId,
    organization_id: organizationId,
    api_key_id: principal.kind === "key" ? principal.id : null,
    at: startedMs,
    expires_at: startedMs + plan.retentionDays * dayMs,
    level: keepsEvidence ? "evidence_and_answers" : "answers",
    reference_hash: hashes[0] ?? null,
    input_hash: isHashed ? rowHash(evidence) : null,
    redact_with: keepsEvidence || end.output ? plan.questionSet : null,
    review: keepsEvidence ? end.review : null,
    sealed: cipher.seal({ organizationId, seqId }, text).toString("base64"),
  }
}

async function write(
  { journal, hasDiskSpace }: ContentLoggerDeps,
  inFlight: { bytes: number },
  record: ContentRecord,
): Promise<void> {
  const bytes = record.sealed.length
  if (inFlight.bytes + bytes > bytesInFlightMax || !hasDiskSpace(bytes)) throw new Dropped("journal")
  inFlight.bytes += bytes
  try {
    await journal.checkRoom()
    await journal.append(record)
  } catch (cause) {
    throw new Dropped("journal", cause)
  } finally {
    inFlight.bytes -= bytes
  }
}

/** What is to be kept of a request. */
interface KeptShare {
  readonly keep: ContentLevel
  readonly sampleRate: number
  readonly retentionDays: number
}

interface OrganizationContent extends KeptShare {
  readonly patterns: readonly NamedPattern[]
  readonly questionSet: string | null
  readonly byKey: ReadonlyMap<string, KeptShare>
}

export interface ContentPlan extends KeptShare {
  readonly patterns: readonly NamedPattern[]
  readonly questionSet: string | null
}

interface ContentPlans {
  /** Throws StoreUnavailable while the store is away and the settings are not known. */
  of(organizationId: string, keyId: string | null): Promise<ContentPlan>
}

/** Settings that cannot be read any more are not used for long: nothing may be kept against what is set now. */
const staleMs = 60_000

export function createContentPlans(organizations: Pick<Organizations, "of">, clock: Clock): ContentPlans {
  const settings = new WeakMap<OrganizationSnapshot, OrganizationContent>()
  return {
    async of(organizationId, keyId) {
      const found = await organizations.of(organizationId)
      if (found && clock.monotonicMs() - found.readMs >= staleMs)
        throw new StoreUnavailable("The settings of content logging cannot be read")
      const known = found && (settings.get(found) ?? readSettings(found))
      if (found && known) settings.set(found, known)
      const own = keyId === null ? undefined : known?.byKey.get(keyId)
      const { keep, sampleRate, retentionDays } = own ?? known ?? nothing
      return {
        keep,
        sampleRate,
        retentionDays,
        patterns: known?.patterns ?? [],
        questionSet: known?.questionSet ?? null,
      }
    },
  }
}

const nothing: KeptShare = {
  keep: defaultContentSettings.keep,
  sampleRate: defaultContentSettings.sample_rate,
  retentionDays: defaultContentSettings.retention_days,
}

function readSettings({ content: stored, keyContent: keys }: OrganizationSnapshot): OrganizationContent {
  const { keep, sampleRate, retentionDays } = stored ?? nothing
  return {
    keep,
    sampleRate,
    retentionDays,
    // Checked and written by the Platform API.
    patterns: stored?.redactPatterns ?? [],
    questionSet: stored?.redactQuestionSet ?? null,
    byKey: new Map(
      keys.map((key) => [
        key.keyId,
        {
          keep: key.keep,
          sampleRate: key.sampleRate,
          retentionDays: Math.min(key.retentionDays ?? retentionDays, retentionDays),
        },
      ]),
    ),
  }
}

const fractions = 2 ** 32

/** Different purposes choose independently of one another. */
export function isSampled(purpose: string, id: string, share: number): boolean {
  if (share <= 0) return false
  if (share >= 1) return true
  return createHash("sha256").update(`${purpose} ${id}`).digest().readUInt32BE(0) / fractions < share
}
