/** Redacts texts by a question set: sentences that it answers with yes, or abstains from, are replaced. */
import type { Principal } from "../../contract/access.ts"
import type { RedactedContent } from "../content/set-redactor.ts"
import type { ModelResolver } from "../organization-access.ts"
import { type TextScorerDeps, answerText } from "./score-texts.ts"
import type { Sets } from "./sets.ts"

export interface SetRedactionDeps extends TextScorerDeps {
  readonly models: Pick<ModelResolver, "first">
  readonly sets: Pick<Sets, "find">
}

const replacement = "[redacted]"
/** Of all texts of a request; with more of them each text is replaced as a whole: each sentence is a request. */
const sentencesMax = 200

/** Throws when the set cannot answer: then nothing of the texts may be stored. */
export async function redactBySet(
  deps: SetRedactionDeps,
  content: RedactedContent,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<{ texts: string[]; count: number }> {
  const split = texts.map(splitSentences)
  if (split.reduce((sum, sentences) => sum + sentences.length, 0) > sentencesMax)
    return { texts: texts.map(() => replacement), count: texts.length }
  const redacted: string[] = []
  let count = 0
  for (const sentences of split) {
    const pieces: string[] = []
    for (const sentence of sentences) {
      const isPrivate = sentence.trim() !== "" && (await isRedacted(deps, content, sentence, signal))
      if (!isPrivate) pieces.push(sentence)
      else if (pieces.at(-1) !== replacement) {
        pieces.push(replacement)
        count++
      }
    }
    redacted.push(pieces.join(""))
  }
  return { texts: redacted, count }
}

const segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" })

const splitSentences = (text: string): string[] =>
  Array.from(segmenter.segment(text), ({ segment }) => segment)

async function isRedacted(
  deps: SetRedactionDeps,
  { organizationId, apiKeyId, seqId, redactWith }: RedactedContent,
  sentence: string,
  signal: AbortSignal,
): Promise<boolean> {
  const [name = "", label = null] = redactWith.split("@")
  const { version } = await deps.sets.find(organizationId, { name, version: label })
  const principal: Principal = {
    kind: "key",
    id: apiKeyId ?? "",
    userId: null,
    organizationId,
    role: null,
    permissions: null,
    rateLimit: null,
  }
  const caller = {
    callSource: "redaction",
    principal,
    organizationId,
    requestId: seqId,
    isCharged: false,
  } as const
  const model = await deps.models.first({ organizationId, name: version.model, wanted: "decisions" })
  const verdicts = await answerText(deps, caller, { version, model, text: sentence }, signal)
  const asked = verdicts.filter(({ isPredicate }) => isPredicate)
  // A set without such questions says of nothing that it may be stored.
  return asked.length === 0 || asked.some(({ value, isAbstention }) => isAbstention || value === "yes")
}
