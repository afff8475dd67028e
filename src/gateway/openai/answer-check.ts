/**
 * What the gateway does about the schemas of a request: bounds before any work, a header for what is left open, and a check of the
 * answers of workers that were handed a strict schema: their word that they kept to it is not taken.
 */
import { checkBounds } from "@umpire/schema-grammar"
import { type Task, threads } from "../../base/peer/threads.ts"
import { Fault } from "../../contract/errors.ts"
import type { GenerateWork, GenerationEvent, JsonObject, GenerationSizes } from "../../engine/engine.ts"
import { refusingSchemas } from "../../engine/generate/refused-schema.ts"

/** A text that a schema must accept; what it is called in errors. */
export interface CheckJob {
  readonly name: string
  readonly schema: JsonObject
  readonly text: string
}

export interface CheckProblem {
  /** Otherwise nothing is known: the schema could not be checked. */
  readonly isViolation: boolean
  readonly text: string
}

/** The same events; in place of the end of an answer that its schema does not accept, a failure. */
export async function* checked(
  events: AsyncIterable<GenerationEvent>,
  work: GenerateWork,
  signal: AbortSignal,
): AsyncGenerator<GenerationEvent> {
  let text = ""
  const calls: { readonly name: string; arguments: string }[] = []
  for await (const event of events) {
    if (event.kind === "text") text += event.text
    else if (event.kind === "call") calls.push({ name: event.name, arguments: "" })
    else if (event.kind === "arguments") {
      const call = calls.at(-1)
      if (call) call.arguments += event.text
    } else if (event.kind === "end" && (event.reason === "stop" || event.reason === "tool_calls"))
      for (const job of jobsOf(work, text, calls)) await check(job, work.organizationId, signal)
    yield event
  }
}

function jobsOf(
  { format, tools }: GenerateWork,
  text: string,
  calls: readonly { readonly name: string; readonly arguments: string }[],
): CheckJob[] {
  const jobs: CheckJob[] = calls.flatMap((call) => {
    const tool = tools.find(({ name }) => name === call.name)
    if (!tool?.strict || tool.parameters === null) return []
    return [{ name: `the arguments of ${call.name}`, schema: tool.parameters, text: call.arguments }]
  })
  if (calls.length > 0 || format.kind !== "json_schema" || !format.strict) return jobs
  return [{ name: "the answer", schema: format.schema, text }]
}

/** Compiling a schema takes time that grows with it. The validators are loaded in a thread only. */
const problemTask: Task<CheckJob, CheckProblem | null> = {
  module: new URL("./answer-problem.ts", import.meta.url).href,
  name: "answerProblem",
}

async function check(job: CheckJob, organizationId: string, signal: AbortSignal): Promise<void> {
  const problem = await threads.run(organizationId, problemTask, job, signal)
  if (problem === null) return
  const { isViolation, text } = problem
  throw new Fault(
    "inference_failed",
    isViolation
      ? `Cannot complete the response: the remote worker did not keep to the strict schema: in ${job.name}, ${text}`
      : `Cannot complete the response: ${job.name} could not be checked against the strict schema: ${text}`,
  )
}

const POINTERS_MAX = 32
const POINTER_CHARACTERS_MAX = 200

/** Throws Fault `invalid_request` for schemas that are too large. */
export function checkSchemas({ format, tools }: GenerateWork): void {
  if (format.kind === "json_schema") checkSchema(format.schema, "response_format")
  for (const { name, parameters } of tools)
    if (parameters !== null) checkSchema(parameters, `tools.${name}.parameters`)
}

const checkSchema = (schema: unknown, param: string): void =>
  refusingSchemas(param, () => checkBounds(schema))

/** Null when the answer is held to everything. More pointers than fit a header are cut off with dots. */
export function notEnforcedValue({ notEnforced }: GenerationSizes): string | null {
  if (!notEnforced || notEnforced.length === 0) return null
  const shown = notEnforced
    .slice(0, POINTERS_MAX)
    .map((pointer) =>
      encodeURI(pointer.toWellFormed()).replaceAll(",", "%2C").slice(0, POINTER_CHARACTERS_MAX),
    )
  return [...shown, ...(notEnforced.length > POINTERS_MAX ? ["..."] : [])].join(", ")
}
