/** Redacts stored content by question sets: a few organizations at a time, each one record, in turns; failures are retried. */
import { setTimeout as wait } from "node:timers/promises"
import type { Clock } from "../../base/clock.ts"
import type { Log } from "../../base/log.ts"
import type { ContentCipher } from "../../store/content/cipher.ts"
import type { ContentBody } from "../../store/content/content.ts"
import {
  type RedactingContent,
  claimRedacting,
  dropRedacting,
  isRedactionDue,
  listRedactingOrganizations,
  postponeRedaction,
  storeRedacted,
} from "../../store/content/redacting.ts"
import type { Database } from "../../store/sql.ts"
import { WorkQueue } from "../../store/work-queue.ts"
import type { DropReason, DroppedCounts } from "./dropped.ts"
import { changeInput, changeMessage, textsIn } from "./redactor.ts"

interface RedactorDeps {
  readonly database: Database
  readonly cipher: ContentCipher
  readonly dropped: DroppedCounts
  /** Throws when the question set cannot answer. */
  readonly redact: (
    content: RedactedContent,
    texts: readonly string[],
    signal: AbortSignal,
  ) => Promise<{ texts: readonly string[]; count: number }>
  readonly clock: Clock
  readonly log: Log
}

/** What was asked for redaction, and by whom: of a stored content. */
export type RedactedContent = Pick<RedactingContent, "seqId" | "organizationId" | "apiKeyId" | "redactWith">

/** Of different organizations: one whose set is slow takes one place. */
const parallelMax = 4
const recordMsMax = 30_000
/** Longer than any attempt: who holds a record beyond it is dead, and another gateway redacts it. */
const leaseMs = 2 * recordMsMax
const secondMs = 1_000
const minuteMs = 60 * secondMs
/** How long each next attempt waits; after the last the content is dropped, and counted. */
export const redactionRetryMs: readonly number[] = [
  secondMs,
  10 * secondMs,
  minuteMs,
  5 * minuteMs,
  30 * minuteMs,
]
const settlePollMs = 20

export class SetRedactor {
  readonly #deps: RedactorDeps
  #queue: WorkQueue<RedactingContent> | null = null

  constructor(deps: RedactorDeps) {
    this.#deps = deps
  }

  start(): void {
    const { database, clock, cipher } = this.#deps
    // Without a key it could only fail what another gateway can do.
    if (!cipher.isAvailable) return
    this.#queue = new WorkQueue<RedactingContent>(this.#deps, {
      name: "content to redact",
      parallelMax,
      perOwnerMax: 1,
      leaseMs,
      listOwners: () => listRedactingOrganizations(database),
      claim: (organizationId, lease) => claimRedacting(database, organizationId, lease),
      run: async (content, { stop }) => await this.#redact(content, stop),
      giveBack: async ({ seqId, redactAttempts }) =>
        await postponeRedaction(database, seqId, {
          after: new Date(clock.nowMs()),
          attempts: redactAttempts - 1,
        }),
    })
  }

  /** There may be something to redact. */
  wake(): void {
    this.#queue?.wake()
  }

  /** Resolves when nothing of the organization is due or under way, or at the signal. */
  async settle(organizationId: string, signal: AbortSignal): Promise<void> {
    const { database, clock } = this.#deps
    while (!signal.aborted && this.#queue) {
      const isDue = await isRedactionDue(database, organizationId, new Date(clock.nowMs()))
      if (!isDue && !this.#queue.isWorkingFor(organizationId)) return
      this.wake()
      await wait(settlePollMs, undefined, { signal }).catch(() => undefined)
    }
  }

  /** What is under way is left to the next start, or to another gateway. */
  async close(): Promise<void> {
    const queue = this.#queue
    this.#queue = null
    await queue?.close()
  }

  async #redact(content: RedactingContent, stop: AbortSignal): Promise<void> {
    const { database, cipher } = this.#deps
    const { seqId } = content
    const opened = cipher.open(content, content.sealed)
    // Another gateway may have the key already.
    if (opened === null) return await this.#failed(content, "decryption")
    const signal = AbortSignal.any([stop, AbortSignal.timeout(recordMsMax)])
    let redacted: ContentBody
    try {
      // Authenticated: a gateway wrote it.
      redacted = await this.#redactBody(content, JSON.parse(opened) as ContentBody, signal)
    } catch (error) {
      stop.throwIfAborted()
      this.#deps.log.warn({ err: error, seq_id: seqId }, "content could not be redacted by its question set")
      return await this.#failed(content, "redaction")
    }
    await storeRedacted(database, seqId, cipher.seal(content, JSON.stringify(redacted)))
  }

  async #redactBody(content: RedactingContent, body: ContentBody, signal: AbortSignal): Promise<ContentBody> {
    const { evidence, input, output } = body
    const texts = [
      ...new Set([...(evidence === null ? [] : [evidence]), ...textsIn(input, output, (isProse) => isProse)]),
    ]
    const done = await this.#deps.redact(content, texts, signal)
    const byText = new Map(texts.map((text, at) => [text, done.texts[at] ?? ""]))
    const change = (text: string, isProse: boolean): string => (isProse ? (byText.get(text) ?? "") : text)
    return {
      ...body,
      evidence: evidence === null ? null : change(evidence, true),
      input: input && changeInput(input, change),
      output: output && output.map((message) => changeMessage(message, change)),
      redactions: body.redactions + done.count,
    }
  }

  async #failed(
    { seqId, organizationId, redactAttempts }: RedactingContent,
    reason: DropReason,
  ): Promise<void> {
    const { database, clock, dropped } = this.#deps
    const delayMs = redactionRetryMs[redactAttempts - 1]
    if (delayMs !== undefined) {
      const after = new Date(clock.nowMs() + delayMs)
      return await postponeRedaction(database, seqId, { after, attempts: redactAttempts })
    }
    const isDropped = await database.transaction((sql) => dropRedacting(sql, seqId))
    if (isDropped) dropped.add(organizationId, reason)
  }
}
