/** About how many tokens a text is. Tokenizers differ, so the estimate takes after what the server counted last. */
import { utf8Bytes } from "../../../src/contract/decisions.ts"
import type { Draft, DraftQuestion } from "./draft.ts"

const bytesPerTokenUsual = 4
const bytesPerTokenMin = 1.5
const bytesPerTokenMax = 6

/** Bytes for each token, by model. */
const learned = new Map<string, number>()

/** Of evidence and questions; as the last answers counted, else as usual. */
export const bytesPerToken = (model: string): number => learned.get(model) ?? bytesPerTokenUsual

/** What stands behind the evidence in each branch. */
function branchBytes({ type, instructions, options }: DraftQuestion): number[] {
  const asked = utf8Bytes(instructions)
  if (type === "predicate") return [asked]
  return options.map(({ value, description }) => asked + utf8Bytes(value) + utf8Bytes(description))
}

/** The longest text that the model reads at once: the evidence and the longest branch. */
export function estimateTokens({ evidence, questions }: Draft, model: string): number {
  const longest = Math.max(0, ...questions.flatMap(branchBytes))
  return Math.ceil((utf8Bytes(evidence) + longest) / bytesPerToken(model))
}

/** Where most of a request is evidence, its count of tokens says how the model splits such text. */
export function learnTokens({ evidence, questions }: Draft, model: string, inputTokens: number): void {
  const read = utf8Bytes(evidence)
  const bytes = read + questions.flatMap(branchBytes).reduce((sum, branch) => sum + branch, 0)
  if (inputTokens === 0 || read < bytes / 2) return
  learned.set(model, Math.min(Math.max(bytes / inputTokens, bytesPerTokenMin), bytesPerTokenMax))
}
