/** The tools of the Responses API: functions, custom tools, namespaces of both, what the client runs by its type, and what only OpenAI can run. */
import { z } from "zod"
import { bodyText } from "../check.ts"
import { clientTools, clientToolTypes } from "./client-tools.ts"
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

/** With `execution: "client"` the client searches; otherwise OpenAI does. */
const ToolSearchTool = z.looseObject({
  type: z.literal("tool_search"),
  execution: z.enum(["server", "client"]).nullable().optional(),
  description: bodyText().nullable().optional(),
  parameters: JsonRecord.nullable().optional(),
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
  "programmatic_tool_calling",
] as const
const HostedTool = z.looseObject({ type: z.enum(hostedTypes) })

/** As Open Responses has it for what a provider adds: its name, a colon, and the type. */
export const extensionType = z.templateLiteral([z.string(), ":", z.string()])
export const isExtension = (type: unknown): boolean => extensionType.safeParse(type).success
const ExtensionTool = z.looseObject({ type: extensionType })

const isHosted = (type: unknown): boolean => hostedTypes.some((hosted) => hosted === type)

export const ResponseTool = selectedUnion(
  [FunctionTool, CustomTool, NamespaceTool, ToolSearchTool, ...clientTools, HostedTool, ExtensionTool],
  (value) => {
    const type = typeOf(value)
    if (isHosted(type)) return HostedTool
    if (isExtension(type)) return ExtensionTool
    const known = [...members, NamespaceTool, ToolSearchTool, ...clientTools]
    return known.find(({ shape }) => shape.type.value === type) ?? null
  },
  "a tool of type function, custom, namespace, tool_search, shell, local_shell or apply_patch, or one that OpenAI runs, such as web_search",
)
export type ResponseTool = z.infer<typeof ResponseTool>

const named = { name: bodyText(), namespace: bodyText().nullable().optional() }
const functionChoice = z.strictObject({ type: z.literal("function"), ...named })
const customChoice = z.strictObject({ type: z.literal("custom"), ...named })
const clientChoice = z.looseObject({ type: z.enum(clientToolTypes) })
const hostedChoice = z.looseObject({ type: z.enum([...hostedTypes, "tool_search"]) })
const anyChoice = z.union([functionChoice, customChoice, clientChoice, hostedChoice])

export const ResponseToolChoice = z.union([
  z.enum(["none", "auto", "required"]),
  functionChoice,
  customChoice,
  clientChoice,
  hostedChoice,
  z.strictObject({
    type: z.literal("allowed_tools"),
    mode: z.enum(["auto", "required"]),
    tools: boundedArray(anyChoice, { max: toolsMax }),
  }),
])
export type ResponseToolChoice = z.infer<typeof ResponseToolChoice>
