/** The tools of the Responses API: functions, custom tools, namespaces of both, and those that only their provider can run. */
import { z } from "zod"
import { bodyText } from "../check.ts"
import { boundedArray, selectedUnion, typeOf } from "./bounded.ts"
import { toolsMax } from "./chat.ts"
import { JsonRecord, functionName, ignored } from "./parameters.ts"

const unread = {
  defer_loading: ignored("every tool is shown to the model"),
  output_schema: ignored("results are read as text"),
  allowed_callers: ignored("the model calls directly"),
  async: ignored("results come with the next request"),
}

const FunctionTool = z.strictObject({
  type: z.literal("function"),
  name: functionName,
  description: bodyText().nullable().optional(),
  parameters: JsonRecord.nullable().optional(),
  strict: z.boolean().nullable().optional(),
  ...unread,
})

/** Its input is text; a format is a wish that nothing enforces. */
const CustomTool = z.strictObject({
  type: z.literal("custom"),
  name: functionName,
  description: bodyText().nullable().optional(),
  format: z.looseObject({ type: bodyText() }).nullable().optional(),
  ...unread,
})

const members = [FunctionTool, CustomTool] as const
const Member = selectedUnion(
  members,
  (value) => members.find(({ shape }) => shape.type.value === typeOf(value)) ?? null,
  "a tool of type function or custom",
)

const NamespaceTool = z.strictObject({
  type: z.literal("namespace"),
  name: functionName,
  description: bodyText().nullable().optional(),
  tools: boundedArray(Member, { max: toolsMax }),
})

/** What OpenAI runs itself, or describes itself. */
const hostedTypes = [
  "web_search",
  "web_search_2025_08_26",
  "web_search_preview",
  "web_search_preview_2025_03_11",
  "file_search",
  "computer",
  "computer_use_preview",
  "code_interpreter",
  "image_generation",
  "mcp",
  "local_shell",
  "shell",
  "apply_patch",
  "tool_search",
  "programmatic_tool_calling",
] as const
const HostedTool = z.looseObject({ type: z.enum(hostedTypes) })

const isHosted = (type: unknown): boolean => hostedTypes.some((hosted) => hosted === type)

export const ResponseTool = selectedUnion(
  [FunctionTool, CustomTool, NamespaceTool, HostedTool],
  (value) => {
    const type = typeOf(value)
    if (isHosted(type)) return HostedTool
    return [...members, NamespaceTool].find(({ shape }) => shape.type.value === type) ?? null
  },
  "a tool of type function, custom or namespace, or one that OpenAI runs, such as web_search",
)
export type ResponseTool = z.infer<typeof ResponseTool>

const named = { name: bodyText(), namespace: bodyText().nullable().optional() }
const functionChoice = z.strictObject({ type: z.literal("function"), ...named })
const customChoice = z.strictObject({ type: z.literal("custom"), ...named })
const hostedChoice = z.looseObject({ type: z.enum(hostedTypes) })
const anyChoice = z.union([functionChoice, customChoice, hostedChoice])

export const ResponseToolChoice = z.union([
  z.enum(["none", "auto", "required"]),
  functionChoice,
  customChoice,
  hostedChoice,
  z.strictObject({
    type: z.literal("allowed_tools"),
    mode: z.enum(["auto", "required"]),
    tools: boundedArray(anyChoice, { max: toolsMax }),
  }),
])
export type ResponseToolChoice = z.infer<typeof ResponseToolChoice>
