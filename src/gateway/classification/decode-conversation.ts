/** Decodes what OpenAI's own decisions take beyond the contract, where the setting allows it: conversations, tools and JSON. */
import { JsonObject, type JsonValue, depthOf, isList, printJson } from "../../base/json.ts"
import { LIMITS } from "../../contract/decisions.ts"
import { Fault } from "../../contract/errors.ts"
import {
  asObject,
  asOneOf,
  asString,
  fieldPath,
  invalid,
  refuseUnknownFields,
  shown,
  wrong,
} from "./classification.ts"

/** Said of every text, so that a message cannot pass for another's. */
const roles = { user: "User", developer: "Developer", system: "System", assistant: "Assistant" } as const
type Role = keyof typeof roles

interface Turn {
  readonly label: string
  readonly text: string
}

/** All of a conversation is evidence. The messages of one user are joined as the contract says; else each says whose it is. */
export function conversationText(value: readonly JsonValue[]): string {
  const calls = new Set<string>()
  const turns = value.map((item, at) => decodeItem(item, `input[${at}]`, calls))
  const isPlain = turns.every(({ label }) => label === roles.user)
  return turns.map(({ label, text }) => (isPlain ? text : `${label}: ${text}`)).join("\n\n")
}

function decodeItem(value: JsonValue, path: string, calls: Set<string>): Turn {
  const item = asObject(value, path)
  const type = item.has("type") ? asString(item.get("type"), fieldPath(path, "type")) : "message"
  switch (type) {
    case "message":
      return decodeMessage(item, path)
    case "function_call":
      return decodeCall(item, path, "arguments", calls)
    case "custom_tool_call":
      return decodeCall(item, path, "input", calls)
    case "function_call_output":
    case "custom_tool_call_output":
      return decodeOutput(item, path, calls)
    default:
      throw unsupported(`${path} is of type ${shown(type)}`)
  }
}

function decodeMessage(message: JsonObject, path: string): Turn {
  const names = Object.keys(roles) as Role[]
  const role = asOneOf(message.get("role"), names, fieldPath(path, "role"))
  refuseUnknownFields(message, ["type", "role", "content", ...(role === "assistant" ? ["phase"] : [])], path)
  const types = role === "assistant" ? assistantTypes : role === "user" ? userTypes : textTypes
  return { label: roles[role], text: partsText(message.get("content"), fieldPath(path, "content"), types) }
}

const textTypes = ["input_text"]
const userTypes = ["input_text", "input_json"]
const assistantTypes = ["output_text", "refusal"]

function decodeCall(item: JsonObject, path: string, field: "arguments" | "input", calls: Set<string>): Turn {
  refuseUnknownFields(item, ["type", "id", "call_id", "name", "namespace", "status", field], path)
  calls.add(asString(item.get("call_id"), fieldPath(path, "call_id")))
  const name = asString(item.get("name"), fieldPath(path, "name"))
  return { label: `Call of ${name}`, text: asString(item.get(field), fieldPath(path, field)) }
}

function decodeOutput(item: JsonObject, path: string, calls: ReadonlySet<string>): Turn {
  refuseUnknownFields(item, ["type", "id", "call_id", "output", "status"], path)
  const id = asString(item.get("call_id"), fieldPath(path, "call_id"))
  if (!calls.has(id)) throw invalid(`${path}.call_id names no call before it`, "send the call, too")
  return { label: "Result", text: partsText(item.get("output"), fieldPath(path, "output"), textTypes) }
}

/** A string, or parts of these types, one after the other. */
function partsText(value: JsonValue | undefined, path: string, types: readonly string[]): string {
  if (typeof value === "string") return value
  if (!isList(value)) throw wrong(path, value, `a string or a list of ${types.join(" and ")} parts`)
  return value.map((part, at) => partText(part, `${path}[${at}]`, types)).join("")
}

function partText(value: JsonValue, path: string, types: readonly string[]): string {
  const part = asObject(value, path)
  const type = asString(part.get("type"), fieldPath(path, "type"))
  if (!types.includes(type)) throw unsupported(`${path} is of type ${shown(type)}`)
  const field = type === "input_json" ? "data" : type === "refusal" ? "refusal" : "text"
  refuseUnknownFields(part, ["type", field, "prompt_cache_breakpoint"], path)
  const at = fieldPath(path, field)
  return field === "data" ? jsonText(part.get(field), at) : asString(part.get(field), at)
}

function jsonText(value: JsonValue | undefined, path: string): string {
  if (!(value instanceof JsonObject || isList(value))) throw wrong(path, value, "an object or a list")
  if (depthOf(value) > LIMITS.jsonDepthMax)
    throw new Fault(
      "invalid_json",
      `Cannot read the request: ${path} is nested more than ${LIMITS.jsonDepthMax} levels deep; make it flatter`,
    )
  return printJson(value)
}

/** Instructions may be parts as well. */
export const instructionsText = (value: JsonValue | undefined, path: string): string =>
  partsText(value, path, userTypes)

const unsupported = (found: string): Fault =>
  new Fault("unsupported_input", `Cannot classify: ${found}; images, files and audio are not supported`)
