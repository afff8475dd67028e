/** What the characters of a conversation alone say about its tokens: enough to refuse it before it is copied, rendered or tokenised. */
import { Fault } from "../../contract/errors.ts"
import type { GenerateWork } from "../engine.ts"

export interface PromptLimits {
  readonly contextTokensMax: number
  /** No token stands for more; Infinity where the file does not say. */
  readonly tokenCharactersMax: number
}

/** Messages with more characters cannot fit. */
export const charactersMax = (limits: PromptLimits, { tools }: Pick<GenerateWork, "tools">): number =>
  limits.contextTokensMax * limits.tokenCharactersMax - charactersOf(tools)

/** Throws Fault `context_length_exceeded` for what cannot fit, and may not be truncated. */
export function refuseTooLong(limits: PromptLimits, work: GenerateWork): void {
  if (work.truncate || charactersOf(work.messages) <= charactersMax(limits, work)) return
  throw tooLong(limits, `more than ${limits.contextTokensMax}`)
}

export const tooLong = ({ contextTokensMax }: PromptLimits, tokens: string): Fault =>
  new Fault(
    "context_length_exceeded",
    `Cannot run the request: its prompt has ${tokens} tokens; the model's context is ${contextTokensMax} tokens`,
    { param: "messages" },
  )

/** At least so many are in the prompt. */
export function charactersOf(value: unknown): number {
  if (typeof value === "string") return value.length
  if (typeof value !== "object" || value === null) return 0
  return Object.values(value).reduce<number>((sum, one) => sum + charactersOf(one), 0)
}
