/** The tools of a response as functions: namespaces flattened, custom tools as functions of one text, hosted ones left out. */
import { createHash } from "node:crypto"
import { Fault } from "../../contract/errors.ts"
import { toolsMax } from "../../contract/openai/chat.ts"
import type { ResponseTool, ResponseToolChoice } from "../../contract/openai/response-tools.ts"
import type { ResponseRequest } from "../../contract/openai/responses.ts"
import type { FunctionTool, ToolChoice } from "../../engine/engine.ts"
import { checkOffered } from "./chat-work.ts"

/** What a function was called before it was flattened. */
export interface ToolIdentity {
  readonly type: "function" | "custom"
  readonly name: string
  readonly namespace: string | null
}

export interface ResponseTools {
  readonly tools: readonly FunctionTool[]
  readonly toolChoice: ToolChoice
  /** By the name that the model calls it by. */
  readonly identities: ReadonlyMap<string, ToolIdentity>
  /** The types of the tools that cannot run here. */
  readonly dropped: readonly string[]
}

export function responseTools(request: Pick<ResponseRequest, "tools" | "tool_choice">): ResponseTools {
  const offered: FunctionTool[] = []
  const dropped: string[] = []
  const identities = new Map<string, ToolIdentity>()
  const add = (tool: Runnable, namespace: string | null): void => {
    const flat = flatName(namespace, tool.name)
    if (identities.has(flat)) throw refuse("tools", `two tools have the name ${flat}`)
    identities.set(flat, { type: tool.type, name: tool.name, namespace })
    offered.push(toFunction(tool, flat))
  }
  for (const tool of request.tools ?? []) {
    if (tool.type === "function" || tool.type === "custom") add(tool, null)
    else if (tool.type === "namespace") for (const member of tool.tools) add(member, tool.name)
    else dropped.push(tool.type)
  }
  if (offered.length > toolsMax)
    throw refuse("tools", `there are more than ${toolsMax} with those of namespaces`)
  return { ...chosen(request.tool_choice ?? "auto", offered), identities, dropped }
}

type Runnable = Extract<ResponseTool, { readonly type: "function" | "custom" }>

const nameCharactersMax = 64
const hashCharacters = 8

/** A name that every worker accepts: long ones end in a hash of the whole. */
export function flatName(namespace: string | null, name: string): string {
  if (namespace === null) return name
  const joined = `${namespace}${namespace.endsWith("__") ? "" : "__"}${name}`
  if (joined.length <= nameCharactersMax) return joined
  const hash = createHash("sha256").update(joined).digest("hex").slice(0, hashCharacters)
  return `${joined.slice(0, nameCharactersMax - hashCharacters - 1)}_${hash}`
}

/** A custom tool takes one text. */
const textParameters = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
}

function toFunction(tool: Runnable, name: string): FunctionTool {
  const description = tool.description ?? null
  if (tool.type === "custom") return { name, description, parameters: textParameters, strict: false }
  return { name, description, parameters: tool.parameters ?? null, strict: tool.strict ?? false }
}

/** The text in the arguments of a call to a custom tool; as they are where the model wrote something else. */
export function customInput(json: string): string {
  try {
    const { input }: { input?: unknown } = JSON.parse(json)
    return typeof input === "string" ? input : json
  } catch {
    return json
  }
}

export const customArguments = (input: string): string => JSON.stringify({ input })

function chosen(
  choice: ResponseToolChoice,
  tools: readonly FunctionTool[],
): { tools: readonly FunctionTool[]; toolChoice: ToolChoice } {
  if (typeof choice === "string") return { tools, toolChoice: checkOffered(choice, tools) }
  switch (choice.type) {
    case "function":
    case "custom":
      return { tools, toolChoice: checkOffered({ name: chosenName(choice) }, tools) }
    case "allowed_tools": {
      const names = new Set(choice.tools.flatMap((one) => ("name" in one ? [chosenName(one as Named)] : [])))
      const offered = tools.filter(({ name }) => names.has(name))
      return { tools: offered, toolChoice: checkOffered(choice.mode, offered) }
    }
    default:
      throw new Fault(
        "unsupported_parameter",
        `Cannot use tool_choice: this server cannot run ${choice.type}`,
        { param: "tool_choice" },
      )
  }
}

interface Named {
  readonly name: string
  readonly namespace?: string | null | undefined
}

const chosenName = ({ name, namespace }: Named): string => flatName(namespace ?? null, name)

const refuse = (param: string, why: string): Fault =>
  new Fault("invalid_request", `Cannot use ${param}: ${why}`, { param })
