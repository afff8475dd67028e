/** Tools of the Responses API that OpenAI describes to its models and the client runs: a shell, and patches of files. */
import { z } from "zod"
import { bodyText } from "../check.ts"
import { boundedArray } from "./bounded.ts"
import { partsMax } from "./limits.ts"
import { JsonRecord } from "./parameters.ts"

/** In its own environment the client runs the commands, in any other OpenAI does. */
const ShellTool = z.looseObject({
  type: z.literal("shell"),
  environment: z.looseObject({ type: bodyText() }).nullable().optional(),
})
const LocalShellTool = z.looseObject({ type: z.literal("local_shell") })
const ApplyPatchTool = z.looseObject({ type: z.literal("apply_patch") })
export const clientTools = [ShellTool, LocalShellTool, ApplyPatchTool] as const

export const clientToolTypes = ["shell", "local_shell", "apply_patch"] as const
export type ClientToolType = (typeof clientToolTypes)[number]

const limit = z.int().nullable().default(null)
const commands = z.array(z.string())
const shellAction = z.object({ commands, timeout_ms: limit, max_output_length: limit })
const localShellAction = z.object({
  type: z.literal("exec").default("exec"),
  command: commands,
  env: z.record(z.string(), z.string()).default({}),
  timeout_ms: limit,
  working_directory: z.string().nullable().default(null),
})
const text = z.string()
const operation = z.discriminatedUnion("type", [
  z.object({ type: z.literal("create_file"), path: text, diff: text }),
  z.object({ type: z.literal("update_file"), path: text, diff: text }),
  z.object({ type: z.literal("delete_file"), path: text }),
])

/** What a model calls each with, as the client reads it. */
export const clientCalls = {
  shell: shellAction,
  local_shell: localShellAction,
  apply_patch: operation,
} as const

const called = { id: z.string(), call_id: z.string() }
const status = z.enum(["in_progress", "completed", "incomplete"])
const begun = z.enum(["in_progress", "completed"])
export const clientOutputItems = [
  z.object({
    type: z.literal("shell_call"),
    ...called,
    action: shellAction,
    environment: z.object({ type: z.literal("local") }),
    status,
  }),
  z.object({ type: z.literal("local_shell_call"), ...called, action: localShellAction, status }),
  z.object({ type: z.literal("apply_patch_call"), ...called, operation, status: begun }),
] as const

const callId = { call_id: bodyText() }
const shellOutput = z.looseObject({
  stdout: bodyText(),
  stderr: bodyText(),
  outcome: z.looseObject({ type: bodyText(), exit_code: z.int().nullable().optional() }),
})
export const clientInputItems = [
  z.looseObject({ type: z.literal("shell_call"), ...callId, action: JsonRecord }),
  z.looseObject({
    type: z.literal("shell_call_output"),
    ...callId,
    output: boundedArray(shellOutput, { max: partsMax }),
  }),
  z.looseObject({ type: z.literal("local_shell_call"), ...callId, action: JsonRecord }),
  // Where it names no call, its id is that of the call.
  z.looseObject({
    type: z.literal("local_shell_call_output"),
    call_id: bodyText().nullable().optional(),
    id: bodyText().nullable().optional(),
    output: bodyText(),
  }),
  z.looseObject({ type: z.literal("apply_patch_call"), ...callId, operation: JsonRecord }),
  z.looseObject({
    type: z.literal("apply_patch_call_output"),
    ...callId,
    status: z.enum(["completed", "failed"]),
    output: bodyText().nullable().optional(),
  }),
] as const
