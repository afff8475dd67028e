/** Redacts texts by patterns in a thread, within a time limit. */
import { task, threads } from "../../base/peer/threads.ts"
import { type NamedPattern, type Redactor, createRedactor } from "../../base/redaction.ts"

interface RedactJob {
  readonly patterns: readonly NamedPattern[]
  readonly texts: readonly string[]
}

export interface RedactedTexts {
  readonly texts: readonly string[]
  /** How many passages were replaced. */
  readonly count: number
}

/** Patterns are an organization's own, and none of them delays other requests. */
export interface Redaction {
  /** Rejects when it cannot be done in time: such texts must not be stored. */
  run(
    organizationId: string,
    patterns: readonly NamedPattern[],
    texts: readonly string[],
  ): Promise<RedactedTexts>
}

/** Matching is linear, but a text may have mebibytes. */
const workMsMax = 15_000

export const redaction: Redaction = {
  run: async (organizationId, patterns, texts) =>
    await threads.run(organizationId, redactTask, { patterns, texts }, AbortSignal.timeout(workMsMax)),
}

const redactTask = task(import.meta.url, redactTexts)

/** In a thread. */
export function redactTexts({ patterns, texts }: RedactJob): RedactedTexts {
  const redactor = redactorOf(patterns)
  const redacted = texts.map((text) => redactor.redact(text))
  return {
    texts: redacted.map(({ text }) => text),
    count: redacted.reduce((sum, { count }) => sum + count, 0),
  }
}

/** Compiled for the organizations that sent last. */
const redactors = new Map<string, Redactor>()
const redactorsMax = 100

function redactorOf(patterns: readonly NamedPattern[]): Redactor {
  const key = JSON.stringify(patterns)
  const redactor = redactors.get(key) ?? createRedactor(patterns)
  redactors.delete(key)
  redactors.set(key, redactor)
  if (redactors.size > redactorsMax) {
    const oldest = redactors.keys().next().value
    if (oldest !== undefined) redactors.delete(oldest)
  }
  return redactor
}
