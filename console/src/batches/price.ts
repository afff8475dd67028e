/** About how many tokens a batch takes, and what they cost. */
import { type DecisionQuestion, utf8Bytes } from "../../../src/contract/decisions.ts"
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import { bytesPerToken } from "../playground/tokens.ts"
import type { Asked } from "./asked.ts"

interface Estimate {
  readonly tokens: number
  /** Null where the model is not known, and of chat models: what they are asked and write is their own. */
  readonly usd: number | null
}

/** What the wording around a question and its options adds to each branch. */
const branchTokens = 5

const chatMethods: ReadonlySet<string> = new Set(["logprobs", "schema", "text"])

/** Evidence is counted once for each row, and every branch behind it. */
export function estimateBatch(
  texts: readonly string[],
  { answering, questions }: Asked,
  models: readonly OrgModel[],
): Estimate {
  const branches = questions.flatMap(branchBytes)
  const asked = branches.reduce((sum, bytes) => sum + bytes, 0)
  const read = texts.reduce((sum, text) => sum + utf8Bytes(text), 0)
  const bytes = read + texts.length * asked
  const tokens = Math.ceil(bytes / bytesPerToken(answering) + texts.length * branches.length * branchTokens)
  const model = models.find(({ model_sku }) => model_sku === answering)
  const isCounted = model && !chatMethods.has(model.decides ?? "native")
  return { tokens, usd: isCounted ? (tokens * model.price_m_input_tokens_usd) / 1_000_000 : null }
}

function branchBytes(asked: DecisionQuestion): number[] {
  const instructions = utf8Bytes(asked.instructions)
  switch (asked.type) {
    case "predicate":
      return [instructions]
    case "choice":
      return asked.choices.map(
        ({ value, description }) => instructions + utf8Bytes(`${String(value)}${description ?? ""}`),
      )
    case "score":
      return asked.levels.map(
        ({ label, description }) => instructions + utf8Bytes(`${label}${description ?? ""}`),
      )
  }
}
