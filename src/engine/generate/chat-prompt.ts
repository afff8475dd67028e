/**
 * Writes a conversation as the model's own chat template has it, with nothing in it taken for a special token, and as the tokens of a
 * prompt that fits the context, without its oldest messages where the caller allows that.
 */
import { randomBytes } from "node:crypto"
import { Template } from "@huggingface/jinja"
import type { Token } from "node-llama-cpp"
import { jsonOrText } from "../../base/json.ts"
import { Fault } from "../../contract/errors.ts"
import type { Constraint } from "./constraint.ts"
import type { Family } from "./families.ts"
import type { LocalModel } from "./local-model.ts"
import { charactersMax, charactersOf, tooLong } from "./prompt-length.ts"
import type { ChatMessage, FunctionTool, GenerateWork, JsonObject } from "../engine.ts"

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

/** A stretch of the prompt; in plain ones a special token's text is just text. */
interface PromptPart {
  readonly text: string
  readonly plain: boolean
}

export interface TemplateFacts {
  readonly template: string | undefined
  readonly family: Family
  readonly bosText: string
  readonly eosText: string
  /** Every control token's text, longest first. */
  readonly controlTexts: readonly string[]
}

interface ChatPrompt {
  readonly parts: readonly PromptPart[]
  /** The template left the model inside its reasoning. */
  readonly startsReasoning: boolean
}

type PromptRequest = Pick<GenerateWork, "messages" | "tools" | "effort">

export function writePrompt(facts: TemplateFacts, asked: PromptRequest, think: boolean): ChatPrompt {
  const shield = new Shield(facts.controlTexts)
  const messages = asked.messages.map((message) => shield.cover(toTemplate(message)))
  const text = render(facts, shield, { ...asked, messages }, think)
  const open = facts.family.reasoning?.open
  return {
    parts: shield.split(text),
    startsReasoning: open !== undefined && text.trimEnd().endsWith(open),
  }
}

type TemplateMessage = Record<string, unknown> & { readonly role: string; readonly content: unknown }
type TemplateInput = { readonly messages: readonly TemplateMessage[] } & Pick<
  PromptRequest,
  "tools" | "effort"
>

function toTemplate(message: ChatMessage): TemplateMessage {
  const { role, content, reasoning, toolCalls, toolCallId } = message
  return {
    role,
    content,
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning, thinking: reasoning }),
    ...(toolCallId === undefined ? {} : { tool_call_id: toolCallId }),
    ...(toolCalls === undefined || toolCalls.length === 0
      ? {}
      : {
          tool_calls: toolCalls.map((call) => ({
            id: call.id,
            type: "function",
            function: { name: call.name, arguments: jsonOrText(call.arguments) },
          })),
        }),
  }
}

const TEMPLATES_KEPT_MAX = 16
const templates = new Map<string, Template>()

/** Parsing takes longer than rendering, and every request to a model has the same template. */
function parse(text: string): Template {
  const known = templates.get(text)
  if (known) return known
  const parsed = new Template(text)
  const [oldest] = templates.keys()
  if (templates.size >= TEMPLATES_KEPT_MAX && oldest !== undefined) templates.delete(oldest)
  templates.set(text, parsed)
  return parsed
}

function render(facts: TemplateFacts, shield: Shield, conversation: TemplateInput, think: boolean): string {
  const { family, template } = facts
  const shown = family.showsTools ? conversation : toolsAsText(conversation, shield, family)
  if (template === undefined) return plainText(shown.messages)
  const parsed = parse(template)
  // Templates differ in what they refuse: some have no system turn, some want user and assistant in turns.
  const attempts = [shown.messages, mergedTurns(systemIntoUser(shown.messages))]
  let failure: unknown
  for (const messages of attempts) {
    try {
      return parsed.render({
        messages,
        ...(family.showsTools && conversation.tools.length > 0
          ? { tools: conversation.tools.map((tool) => shield.cover(toolForTemplate(tool))) }
          : {}),
        add_generation_prompt: true,
        enable_thinking: think,
        ...(conversation.effort === null ? {} : { reasoning_effort: conversation.effort }),
        bos_token: facts.bosText,
        eos_token: facts.eosText,
      })
    } catch (error) {
      failure = error
    }
  }
  throw new Fault("invalid_request", "Cannot write the conversation: the model's chat template refuses it", {
    param: "messages",
    cause: failure,
  })
}

const toolForTemplate = ({ name, description, parameters }: FunctionTool): JsonObject => ({
  type: "function",
  function: {
    name,
    description: description ?? "",
    parameters: parameters ?? { type: "object", properties: {} },
  },
})

/** For templates that know no tools: they are described in the system turn, and calls and results are written as text. */
function toolsAsText(conversation: TemplateInput, shield: Shield, family: Family): TemplateInput {
  const [before, between, after] = family.calls[0]?.written ?? ["", "", ""]
  const messages = conversation.messages.map((message): TemplateMessage => {
    if (message.role === "tool")
      return { role: "user", content: `<tool_response>\n${String(message.content)}\n</tool_response>` }
    const calls = message["tool_calls"] as { function: { name: string; arguments: unknown } }[] | undefined
    if (!calls) return message
    const texts = calls.map(
      (call) => `${before}${call.function.name}${between}${JSON.stringify(call.function.arguments)}${after}`,
    )
    return {
      role: message.role,
      content: [message.content, ...texts].filter((text) => text !== "").join("\n"),
    }
  })
  if (conversation.tools.length === 0) return { ...conversation, messages }
  const described = conversation.tools
    .map((tool) => JSON.stringify(shield.cover(toolForTemplate(tool))))
    .join("\n")
  const guide = `Functions you can call, as JSON schemas:\n${described}\nTo call one, write only:\n${before}NAME${between}ARGUMENTS${after}`
  const [first, ...rest] = messages
  const system: TemplateMessage =
    first?.role === "system"
      ? { role: "system", content: `${String(first.content)}\n\n${guide}` }
      : { role: "system", content: guide }
  return { ...conversation, messages: first?.role === "system" ? [system, ...rest] : [system, ...messages] }
}

function systemIntoUser(messages: readonly TemplateMessage[]): TemplateMessage[] {
  return messages.map((message) => (message.role === "system" ? { ...message, role: "user" } : message))
}

function mergedTurns(messages: readonly TemplateMessage[]): TemplateMessage[] {
  const merged: TemplateMessage[] = []
  for (const message of messages) {
    const last = merged.at(-1)
    if (last && last.role === message.role && message.role === "user")
      merged[merged.length - 1] = {
        ...last,
        content: `${String(last.content)}\n\n${String(message.content)}`,
      }
    else merged.push(message)
  }
  return merged
}

function plainText(messages: readonly TemplateMessage[]): string {
  return `${messages.map(({ role, content }) => `${role}: ${String(content)}`).join("\n\n")}\n\nassistant:`
}

/** Covers the texts of special tokens while the template runs, so that a message cannot end its turn. */
class Shield {
  readonly #pattern: RegExp | null
  readonly #nonce = randomBytes(8).toString("hex")
  readonly #covered: string[] = []

  constructor(controlTexts: readonly string[]) {
    const escaped = controlTexts.map((text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
    this.#pattern = escaped.length === 0 ? null : new RegExp(escaped.join("|"), "g")
  }

  cover<Value>(value: Value): Value {
    return this.#deep(value) as Value
  }

  split(text: string): PromptPart[] {
    const pieces = text.split(new RegExp(`\uE000${this.#nonce}:(\\d+)\uE001`))
    const parts = pieces.map((piece, index) =>
      index % 2 === 0
        ? { text: piece, plain: false }
        : { text: this.#covered[Number(piece)] ?? "", plain: true },
    )
    return parts.filter((part) => part.text !== "")
  }

  #deep(value: unknown): unknown {
    if (typeof value === "string") return this.#text(value)
    if (Array.isArray(value)) return value.map((one) => this.#deep(one))
    if (typeof value !== "object" || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [this.#text(key), this.#deep(one)]))
  }

  #text(text: string): string {
    if (!this.#pattern) return text
    return text.replaceAll(this.#pattern, (found) => {
      this.#covered.push(found)
      return `\uE000${this.#nonce}:${this.#covered.length - 1}\uE001`
    })
  }
}
