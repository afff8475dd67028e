/** What OpenAI's own decisions take beyond the contract, where the setting allows it: conversations, tools, JSON, and instructions as parts. */
import { z } from "zod"
import {
  DecisionsRequest,
  choiceQuestion,
  evidenceRules,
  onWire,
  predicateQuestion,
  questionList,
  ruled,
  scoreQuestion,
  setQuestions,
} from "../../contract/decisions.ts"
import { jsonContainer } from "../../contract/systemone.ts"

const unsupported = "images, files and audio are not supported"
const ignored = z.unknown().optional()

const inputText = z.strictObject({
  type: z.literal("input_text"),
  text: z.string(),
  prompt_cache_breakpoint: ignored,
})
const data: z.ZodType = onWire(z.union(jsonContainer), { rendered: { isNullable: false } })
const inputJson = z.strictObject({
  type: z.literal("input_json"),
  data,
  prompt_cache_breakpoint: ignored,
})
const outputText = inputText.extend({ type: z.literal("output_text") })
const refused = z.strictObject({
  type: z.literal("refusal"),
  refusal: z.string(),
  prompt_cache_breakpoint: ignored,
})
type Part = z.infer<typeof inputText | typeof inputJson | typeof outputText | typeof refused>

/** A string, or parts of these types. */
const content = <Parts extends readonly [z.core.$ZodTypeDiscriminable, ...z.core.$ZodTypeDiscriminable[]]>(
  wanted: string,
  ...parts: Parts
) =>
  onWire(z.union([z.string(), z.array(onWire(z.discriminatedUnion("type", parts), { unsupported }))]), {
    wanted: `a string or a list of ${wanted} parts`,
  })

const textContent = content("input_text", inputText)
const userContent = content("input_text and input_json", inputText, inputJson)

const message = z.strictObject({
  type: z.literal("message").optional(),
  role: z.literal("user"),
  content: userContent,
})
const messages = z.discriminatedUnion("role", [
  message,
  message.extend({ role: z.literal("developer"), content: textContent }),
  message.extend({ role: z.literal("system"), content: textContent }),
  message.extend({
    role: z.literal("assistant"),
    content: content("output_text and refusal", outputText, refused),
    phase: ignored,
  }),
])
const called = { call_id: z.string(), name: z.string(), id: ignored, namespace: ignored, status: ignored }
const functionCall = z.strictObject({ type: z.literal("function_call"), ...called, arguments: z.string() })
const toolCall = z.strictObject({ type: z.literal("custom_tool_call"), ...called, input: z.string() })
const functionOutput = z.strictObject({
  type: z.literal("function_call_output"),
  call_id: z.string(),
  output: textContent,
  id: ignored,
  status: ignored,
})
const toolOutput = functionOutput.extend({ type: z.literal("custom_tool_call_output") })

const item = onWire(
  z.discriminatedUnion("type", [messages, functionCall, toolCall, functionOutput, toolOutput]),
  { unsupported },
)
type Item = z.infer<typeof item>

const conversation = ruled(
  onWire(z.union([z.string(), z.array(item)]), { wanted: "a string or a list of user messages" }),
  {
    code: "invalid_request",
    holds: (input) => typeof input === "string" || everyCallIsKnown(input),
    found: () => "has a result whose call_id names no call before it; send the call, too",
  },
  ...evidenceRules(conversationText),
)

function everyCallIsKnown(items: readonly Item[]): boolean {
  const calls = new Set<string>()
  return items.every((each) => {
    if ("name" in each) calls.add(each.call_id)
    return !("output" in each) || calls.has(each.call_id)
  })
}

/** Said of every text, so that a message cannot pass for another's. */
const roles = { user: "User", developer: "Developer", system: "System", assistant: "Assistant" } as const

/** All of a conversation is evidence. The messages of one user are joined as the contract says; else each says whose it is. */
export function conversationText(input: string | readonly Item[]): string {
  if (typeof input === "string") return input
  const isPlain = input.every((each) => "role" in each && each.role === "user")
  return input.map((each) => (isPlain ? textOf(each) : `${labelOf(each)}: ${textOf(each)}`)).join("\n\n")
}

function labelOf(each: Item): string {
  if ("role" in each) return roles[each.role]
  return "name" in each ? `Call of ${each.name}` : "Result"
}

function textOf(each: Item): string {
  if ("role" in each) return contentText(each.content)
  if ("output" in each) return contentText(each.output)
  return "arguments" in each ? each.arguments : each.input
}

export function contentText(given: string | readonly Part[]): string {
  if (typeof given === "string") return given
  return given.map(partText).join("")
}

function partText(part: Part): string {
  if (part.type === "refusal") return part.refusal
  // JSON is rendered where it is read.
  return part.type === "input_json" ? String(part.data) : part.text
}

const instructions = userContent
const question = z.discriminatedUnion("type", [
  predicateQuestion.extend({ instructions }),
  choiceQuestion.extend({ instructions }),
  scoreQuestion.extend({ instructions }),
])

export type ConversationQuestion = z.infer<typeof question>

/** Caches are read and thrown away: evidence is cached by its tokens. */
export const ConversationRequest = DecisionsRequest.extend({
  input: conversation,
  questions: questionList(question),
  prompt_cache_key: ignored,
  prompt_cache_options: ignored,
})
export const ConversationSetRequest = ConversationRequest.extend({ questions: setQuestions(question) })
