/** Redacts texts by patterns in a thread, within a time limit: those in what was asked and answered. */
import { task, threads } from "../../base/peer/threads.ts"
import { type NamedPattern, type Redactor, createRedactor } from "../../base/redaction.ts"
import type { ContentInput, ContentMessage } from "../../contract/content.ts"

interface RedactJob {
  readonly patterns: readonly NamedPattern[]
  readonly texts: readonly string[]
}

interface RedactedTexts {
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

/** Prose is what people and models write; names and ids are not. */
type ChangeText = (text: string, isProse: boolean) => string

export function changeMessage(message: ContentMessage, change: ChangeText): ContentMessage {
  const { role, content, reasoning, tool_calls, tool_call_id } = message
  return {
    role,
    content: change(content, true),
    ...(reasoning === undefined ? {} : { reasoning: change(reasoning, true) }),
    ...(tool_calls === undefined
      ? {}
      : {
          tool_calls: tool_calls.map((call) => ({
            id: change(call.id, false),
            name: change(call.name, false),
            arguments: change(call.arguments, true),
          })),
        }),
    ...(tool_call_id === undefined ? {} : { tool_call_id: change(tool_call_id, false) }),
  }
}

export function changeInput({ messages, texts }: ContentInput, change: ChangeText): ContentInput {
  return {
    messages: messages.map((message) => changeMessage(message, change)),
    texts: texts.map((text) => (text === null ? null : change(text, true))),
  }
}

/** Each text once. */
export function textsIn(
  input: ContentInput | null,
  output: readonly ContentMessage[] | null,
  isWanted: (isProse: boolean) => boolean = () => true,
): string[] {
  const found = new Set<string>()
  const note: ChangeText = (text, isProse) => {
    if (isWanted(isProse)) found.add(text)
    return text
  }
  if (input) changeInput(input, note)
  for (const message of output ?? []) changeMessage(message, note)
  return [...found]
}
