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
import type { DropReason, DroppedCounts } from "./dropped.ts"
import type { RedactedContent } from "./redact-by-set.ts"
import { changeInput, changeMessage, textsIn } from "./texts.ts"

interface RedactorParts {
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

/** Of different organizations: one whose set is slow takes one place. */
const parallelMax = 4
const lookEveryMs = 1_000
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
const settleLookMs = 20

export class SetRedactor {
  readonly #parts: RedactorParts
  readonly #stop = new AbortController()
  /** By organization. */
  readonly #running = new Map<string, Promise<void>>()
  #wake = new AbortController()
  #loop: Promise<void> = Promise.resolve()
  /** Whose turn was last. */
  #last = ""

  constructor(parts: RedactorParts) {
    this.#parts = parts
  }

  start(): void {
    // Without a key it could only fail what another gateway can do.
    if (this.#parts.cipher.isAvailable) this.#loop = this.#run()
  }

  /** There may be something to redact. */
  wake(): void {
    this.#wake.abort()
  }

  /** Resolves when nothing of the organization is due or under way, or at the signal. */
  async settle(organizationId: string, signal: AbortSignal): Promise<void> {
    const { database, clock } = this.#parts
    while (!signal.aborted && !this.#stop.signal.aborted) {
      if (
        !this.#running.has(organizationId) &&
        !(await isRedactionDue(database, organizationId, new Date(clock.nowMs())))
      )
        return
      this.wake()
      await wait(settleLookMs, undefined, { signal }).catch(() => undefined)
    }
  }

  /** What is under way is left to the next start, or to another gateway. */
  async close(): Promise<void> {
    this.#stop.abort(new Error("The server is stopping"))
    this.#wake.abort()
    await this.#loop
    await Promise.all(this.#running.values())
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#wake = new AbortController()
      await this.#begin().catch((error: unknown) =>
        this.#parts.log.debug({ err: error }, "content to redact cannot be read now"),
      )
      if (this.#stop.signal.aborted) return
      await wait(lookEveryMs, undefined, { signal: this.#wake.signal }).catch(() => undefined)
    }
  }

  /** Organizations take turns: those after the one that was last come first. */
  async #begin(): Promise<void> {
    const { database, clock } = this.#parts
    if (this.#running.size >= parallelMax) return
    const all = await listRedactingOrganizations(database)
    const after = all.filter((id) => id > this.#last)
    for (const organizationId of [...after, ...all.slice(0, all.length - after.length)]) {
      if (this.#running.size >= parallelMax || this.#stop.signal.aborted) return
      if (this.#running.has(organizationId)) continue
      const nowMs = clock.nowMs()
      const lease = { now: new Date(nowMs), until: new Date(nowMs + leaseMs) }
      const content = await claimRedacting(database, organizationId, lease)
      if (!content) continue
      this.#last = organizationId
      const work = this.#redact(content)
        .catch((error: unknown) =>
          // The lease runs out, and it is tried again.
          this.#parts.log.warn({ err: error }, "the redaction of content could not be ended"),
        )
        .finally(() => {
          this.#running.delete(organizationId)
          this.wake()
        })
      this.#running.set(organizationId, work)
    }
  }

  async #redact(content: RedactingContent): Promise<void> {
    const { database, cipher } = this.#parts
    const { seqId } = content
    const opened = cipher.open(content, content.sealed)
    // Another gateway may have the key already.
    if (opened === null) return await this.#failed(content, "decryption")
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(recordMsMax)])
    let redacted: ContentBody
    try {
      // Authenticated: a gateway wrote it.
      redacted = await this.#redactBody(content, JSON.parse(opened) as ContentBody, signal)
    } catch (error) {
      if (!this.#stop.signal.aborted)
        this.#parts.log.warn(
          { err: error, seq_id: seqId },
          "content could not be redacted by its question set",
        )
      return await this.#failed(content, "redaction")
    }
    await storeRedacted(database, seqId, cipher.seal(content, JSON.stringify(redacted)))
  }

  async #redactBody(content: RedactingContent, body: ContentBody, signal: AbortSignal): Promise<ContentBody> {
    const { evidence, input, output } = body
    const texts = [
      ...new Set([...(evidence === null ? [] : [evidence]), ...textsIn(input, output, (isProse) => isProse)]),
    ]
    const done = await this.#parts.redact(content, texts, signal)
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
    const { database, clock, dropped } = this.#parts
    // Not this record's doing.
    if (this.#stop.signal.aborted) {
      const after = new Date(clock.nowMs())
      return await postponeRedaction(database, seqId, { after, attempts: redactAttempts - 1 })
    }
    const delayMs = redactionRetryMs[redactAttempts - 1]
    if (delayMs !== undefined) {
      const after = new Date(clock.nowMs() + delayMs)
      return await postponeRedaction(database, seqId, { after, attempts: redactAttempts })
    }
    const isDropped = await database.transaction((sql) => dropRedacting(sql, seqId))
    if (isDropped) dropped.add(organizationId, reason)
  }
}
