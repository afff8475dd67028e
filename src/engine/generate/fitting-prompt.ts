/** Writes a conversation as the tokens of a prompt that fits the context, without its oldest messages where the caller allows that. */
import type { Token } from "node-llama-cpp"
import type { GenerateWork } from "../engine.ts"
import { writePrompt } from "./chat-prompt.ts"
import type { Constraint } from "./constraint.ts"
import type { LocalModel } from "./local-model.ts"
import { charactersMax, charactersOf, tooLong } from "./prompt-length.ts"

interface FittingPrompt {
  readonly tokens: readonly Token[]
  readonly startsReasoning: boolean
  /** Of the context, for the output. */
  readonly roomTokens: number
}

type Messages = GenerateWork["messages"]

/**
 * Throws Fault `context_length_exceeded`. What cannot fit by its length alone is never rendered or tokenised, and how much has to go
 * is found by halving: the process that does this serves every organization.
 */
export function fittingPrompt(
  model: LocalModel,
  work: GenerateWork,
  constraint: Constraint | null,
): FittingPrompt {
  const outputTokensMin =
    constraint === null ? 1 : Math.max(1, model.tokenize(constraint.shortest, false).length)
  const fit = (messages: Messages): FittingPrompt | number => {
    const { tokens, startsReasoning } = tokenise(model, { ...work, messages }, constraint)
    const roomTokens = model.contextTokensMax - tokens.length - 1
    return roomTokens >= outputTokensMin ? { tokens, startsReasoning, roomTokens } : tokens.length
  }
  const cuts = work.truncate ? cutsOf(work.messages) : [work.messages]
  const most = charactersMax(model, work)
  const first = cuts.findIndex((messages) => charactersOf(messages) <= most)
  if (first < 0) throw tooLong(model, `more than ${model.contextTokensMax}`)
  const whole = fit(cuts[first] ?? [])
  if (typeof whole !== "number") return whole
  let [low, high] = [first + 1, cuts.length]
  let best: FittingPrompt | null = null
  while (low < high) {
    const middle = (low + high) >> 1
    const found = fit(cuts[middle] ?? [])
    if (typeof found === "number") low = middle + 1
    else {
      high = middle
      best = found
    }
  }
  if (best) return best
  throw tooLong(model, String(whole))
}

/** The conversation, and what is left of it as its oldest messages go, one after the other. */
function cutsOf(messages: Messages): Messages[] {
  const cuts = [messages]
  for (let rest = withoutOldest(messages); rest; rest = withoutOldest(rest)) cuts.push(rest)
  return cuts
}

/** The oldest message that is not the system's goes first; a tool's result goes with the call it answers. */
function withoutOldest(messages: Messages): Messages | null {
  const index = messages.findIndex(({ role }) => role !== "system")
  if (index < 0 || index >= messages.length - 1) return null
  const rest = messages.slice(index + 1)
  while (rest.length > 1 && rest[0]?.role === "tool") rest.shift()
  return [...messages.slice(0, index), ...rest]
}

function tokenise(
  model: LocalModel,
  work: GenerateWork,
  constraint: Constraint | null,
): { tokens: Token[]; startsReasoning: boolean } {
  const think = constraint === null && work.effort !== "none" && work.effort !== "minimal"
  const tools = work.toolChoice === "none" ? [] : work.tools
  const { parts, startsReasoning } = writePrompt(model.template, { ...work, tools }, think)
  const tokens = model.withBos(parts.flatMap(({ text, plain }) => model.tokenize(text, !plain)))
  // A forced call starts after the marks that open it, so the model goes on from there.
  if (constraint && constraint.opening !== "") tokens.push(...model.tokenize(constraint.opening, true))
  return { tokens, startsReasoning: startsReasoning && constraint === null }
}
