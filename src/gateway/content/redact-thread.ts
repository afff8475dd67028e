/** The thread that redacts content: patterns are an organization's own, and none of them delays other requests. */
import { servePeer } from "../../base/peer/connection.ts"
import { type NamedPattern, type Redactor, createRedactor } from "../../base/redaction.ts"
import { returnMemoryWhenIdle } from "../../base/thread-memory.ts"
import { lowerThreadPriority } from "../../base/thread-priority.ts"
import type { RedactService } from "./redactor.ts"

lowerThreadPriority()
returnMemoryWhenIdle()

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

servePeer<RedactService>({
  redact: ({ patterns, texts }) => {
    const redactor = redactorOf(patterns)
    const redacted = texts.map((text) => redactor.redact(text))
    return {
      texts: redacted.map(({ text }) => text),
      count: redacted.reduce((sum, { count }) => sum + count, 0),
    }
  },
})
