/** The shell and the patches of files that a client runs: functions to the model, items of their own to the client. */
import type { z } from "zod"
import { parsedJson } from "../../base/json.ts"
import { Fault } from "../../contract/errors.ts"
import { type ClientToolType, clientCalls, clientToolTypes } from "../../contract/openai/client-tools.ts"
import type { ResponseTool } from "../../contract/openai/response-tools.ts"
import type { InputItem, OutputItem } from "../../contract/openai/responses.ts"
import type { FunctionTool, JsonObject } from "../../engine/engine.ts"

export type ClientTool = Extract<ResponseTool, { readonly type: ClientToolType }>

/** Not what OpenAI would run in a container of its own. */
export const isClientTool = (tool: ResponseTool): tool is ClientTool =>
  clientToolTypes.some((type) => type === tool.type) && !isContained(tool)

const isContained = (tool: ResponseTool): boolean =>
  tool.type === "shell" && (tool.environment?.type ?? "local") !== "local"

const texts = { type: "array", items: { type: "string" } }
const orNull = (type: string): JsonObject => ({ type: [type, "null"] })

/** Every property is named: workers that hold a model to a schema ask for that. */
const given = (properties: JsonObject): JsonObject => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})

const described: Record<ClientToolType, { readonly description: string; readonly parameters: JsonObject }> = {
  shell: {
    description:
      "Runs commands in a shell, one after the other, and returns what each wrote and its exit code.",
    parameters: given({
      commands: texts,
      timeout_ms: orNull("integer"),
      max_output_length: orNull("integer"),
    }),
  },
  local_shell: {
    description: "Runs one command, given as its words, and returns what it wrote.",
    parameters: given({ command: texts, timeout_ms: orNull("integer"), working_directory: orNull("string") }),
  },
  apply_patch: {
    description:
      "Creates, updates or deletes a file. The diff of create_file has every line of the file after a +. That of update_file has one or more " +
      "parts: a line @@, which a line of the file that the part stands under may follow, then lines of the file after a space, removed lines after a - and " +
      "new lines after a +. That of delete_file is empty.",
    parameters: given({
      type: { type: "string", enum: ["create_file", "update_file", "delete_file"] },
      path: { type: "string" },
      diff: { type: "string" },
    }),
  },
}

export const clientFunction = (type: ClientToolType, name: string): FunctionTool => ({
  name,
  ...described[type],
  strict: true,
})

type ClientCall = Extract<OutputItem, { readonly type: `${ClientToolType}_call` }>

interface Called {
  readonly id: string
  readonly call_id: string
}

/** A call whose arguments are not written yet, or never will be. */
export function begunCall(type: ClientCall["type"], { id, call_id }: Called): ClientCall {
  const begun = { id, call_id, status: "in_progress" } as const
  switch (type) {
    case "shell_call":
      return {
        type,
        ...begun,
        action: clientCalls.shell.parse({ commands: [] }),
        environment: { type: "local" },
      }
    case "local_shell_call":
      return { type, ...begun, action: clientCalls.local_shell.parse({ command: [] }) }
    case "apply_patch_call":
      return { type, ...begun, operation: { type: "update_file", path: "", diff: "" } }
  }
}

/** Throws Fault `inference_failed` where the client could not run what the model wrote. */
export function writtenCall(begun: ClientCall, json: string): ClientCall {
  const status = "completed"
  switch (begun.type) {
    case "shell_call":
      return { ...begun, action: readArguments(clientCalls.shell, json), status }
    case "local_shell_call":
      return { ...begun, action: readArguments(clientCalls.local_shell, json), status }
    case "apply_patch_call":
      return { ...begun, operation: readArguments(clientCalls.apply_patch, json), status }
  }
}

function readArguments<Schema extends z.ZodType>(schema: Schema, json: string): z.output<Schema> {
  const read = schema.safeParse(parsedJson(json))
  if (read.success) return read.data
  throw new Fault(
    "inference_failed",
    "Cannot complete the response: the model called a tool without the arguments that it needs",
  )
}

type ShellOutput = Extract<InputItem, { readonly type: "shell_call_output" }>["output"][number]

/** How it ended stands after what it wrote. */
export function shellText({ stdout, stderr, outcome }: ShellOutput): string {
  const code = outcome.exit_code ?? null
  const end = outcome.type === "timeout" ? "timed out" : code === null ? "" : `exit code ${code}`
  return [stdout, stderr, end].filter((text) => text !== "").join("\n")
}
