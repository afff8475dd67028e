/**
 * The tools of a response as functions: namespaces flattened, custom tools as functions of one text, the client's search, shell and
 * patches as more, hosted ones left out. Those that items of the conversation add are offered beside the request's own.
 */
import { createHash } from "node:crypto"
import { Fault } from "../../contract/errors.ts"
import { toolsMax } from "../../contract/openai/chat.ts"
import type { ClientToolType } from "../../contract/openai/client-tools.ts"
import type { ResponseTool, ResponseToolChoice } from "../../contract/openai/response-tools.ts"
import type { InputItem, ResponseRequest } from "../../contract/openai/responses.ts"
import type { FunctionTool, ToolChoice } from "../../engine/engine.ts"
import { checkOffered, customFunction } from "./chat-work.ts"
import { type ClientTool, clientFunction, isClientTool } from "./client-tools.ts"

/** What a function was called before it was flattened. */
export interface ToolIdentity {
  readonly type: "function" | "custom" | "tool_search" | ClientToolType
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

export function responseTools(
  request: Pick<ResponseRequest, "tools" | "tool_choice">,
  items: readonly InputItem[],
): ResponseTools {
  const dropped: string[] = []
  const flat = new Map<string, FlatTool>()
  // A later list replaces what an earlier one has under the same name.
  for (const list of [request.tools ?? [], ...items.flatMap(toolsAdded)])
    for (const [name, tool] of flatTools(list, dropped)) flat.set(name, tool)
  if (flat.size > toolsMax)
    throw refuse("tools", `there are more than ${toolsMax} with those of namespaces and items`)
  const offered = [...flat.values()].map((tool) => tool.function)
  const identities = new Map([...flat].map(([name, { identity }]) => [name, identity]))
  return { ...chosen(request.tool_choice ?? "auto", offered), identities, dropped }
}

const toolsAdded = (item: InputItem): (readonly ResponseTool[])[] =>
  item.type === "additional_tools" || item.type === "tool_search_output" ? [item.tools] : []

interface FlatTool {
  readonly function: FunctionTool
  readonly identity: ToolIdentity
}

/** By the name that the model calls each by. */
export function flatTools(tools: readonly ResponseTool[], dropped: string[] = []): Map<string, FlatTool> {
  const flat = new Map<string, FlatTool>()
  const add = (tool: Runnable, namespace: string | null): void => {
    const name = flatName(namespace, tool.name)
    if (flat.has(name)) throw refuse("tools", `two tools have the name ${name}`)
    const identity = { type: tool.type, name: tool.name, namespace }
    flat.set(name, { function: toFunction(tool, name), identity })
  }
  for (const tool of tools) {
    if (tool.type === "function" || tool.type === "custom") add(tool, null)
    else if (tool.type === "namespace") for (const member of tool.tools) add(member, tool.name)
    else if (tool.type === "tool_search" && tool.execution === "client")
      add({ ...tool, name: searchName }, null)
    else if (isClientTool(tool)) add({ ...tool, name: tool.type }, null)
    else dropped.push(tool.type)
  }
  return flat
}

/** What the model calls the client's search of tools. */
export const searchName = "tool_search"

type Runnable =
  | Extract<ResponseTool, { readonly type: "function" | "custom" }>
  | ((Extract<ResponseTool, { readonly type: "tool_search" }> | ClientTool) & { readonly name: string })

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

function toFunction(tool: Runnable, name: string): FunctionTool {
  if (isClientTool(tool)) return clientFunction(tool.type, name)
  const description = tool.description ?? null
  if (tool.type === "custom") return customFunction(name, description)
  const strict = tool.type === "function" && tool.strict === true
  return { name, description, parameters: tool.parameters ?? null, strict }
}

function chosen(
  choice: ResponseToolChoice,
  tools: readonly FunctionTool[],
): { tools: readonly FunctionTool[]; toolChoice: ToolChoice } {
  if (typeof choice === "string") return { tools, toolChoice: checkOffered(choice, tools) }
  switch (choice.type) {
    case "function":
    case "custom":
      return { tools, toolChoice: checkOffered({ name: chosenName(choice) }, tools) }
    case "shell":
    case "local_shell":
    case "apply_patch":
      return { tools, toolChoice: checkOffered({ name: choice.type }, tools) }
    case "allowed_tools": {
      // A tool that has no name is called by its type.
      const names = new Set(choice.tools.map((one) => ("name" in one ? chosenName(one as Named) : one.type)))
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
