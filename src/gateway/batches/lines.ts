/** Reads the lines of a batch's input, in a thread: each is one request, named by its `custom_id`. */
import { task, threads } from "../../base/peer/threads.ts"
import { JsonError, JsonObject, type JsonValue, printJson, readJson } from "../../base/json.ts"
import type { BatchError, BatchErrorCode, BatchPath } from "../../contract/openai/batches.ts"

interface LineJob {
  readonly endpoint: BatchPath
  /** Whole lines. */
  readonly bytes: Uint8Array
  /** Of the first of them, from 1. */
  readonly firstLine: number
  /** Without them only the names are told. */
  readonly withBodies: boolean
}

export interface BatchLine {
  /** From 1. */
  readonly line: number
  readonly customId: string
  /** JSON; empty where bodies are not asked for. */
  readonly body: string
}

interface ReadLines {
  readonly lines: readonly BatchLine[]
  readonly errors: readonly BatchError[]
}

/** `owner` waits where several are read for it at once. */
export async function readLines(owner: string, job: LineJob, signal: AbortSignal): Promise<ReadLines> {
  return await threads.run(owner, readLinesTask, job, signal)
}

const readLinesTask = task(import.meta.url, readBatchLines)

const newline = 0x0a
const customIdCharactersMax = 512
/** The deepest body that an endpoint reads, and the object around it. */
const depthMax = 65

/** In the thread. Blank lines are passed over. */
export function readBatchLines({ endpoint, bytes, firstLine, withBodies }: LineJob): ReadLines {
  const lines: BatchLine[] = []
  const errors: BatchError[] = []
  let line = firstLine
  for (let start = 0; start < bytes.length; line++) {
    const found = bytes.indexOf(newline, start)
    const end = found < 0 ? bytes.length : found
    const text = bytes.subarray(start, end)
    start = end + 1
    if (isBlank(text)) continue
    const read = readLine(text, endpoint)
    if ("code" in read) errors.push({ ...read, line })
    else lines.push({ line, customId: read.customId, body: withBodies ? printJson(read.body) : "" })
  }
  return { lines, errors }
}

/** Spaces, tabs and carriage returns. */
const isBlank = (bytes: Uint8Array): boolean =>
  bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === 0x0d)

type LineError = Omit<BatchError, "line">

function readLine(
  bytes: Uint8Array,
  endpoint: BatchPath,
): { readonly customId: string; readonly body: JsonObject } | LineError {
  let value: JsonValue
  try {
    value = readJson(bytes, depthMax)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return wrong("invalid_json_line", `Cannot read the line: ${error.message}`, null)
  }
  if (!(value instanceof JsonObject))
    return wrong("invalid_json_line", "Cannot read the line: it is not a JSON object", null)
  const customId = value.get("custom_id")
  if (typeof customId !== "string" || customId === "" || customId.length > customIdCharactersMax)
    return wrong(
      "invalid_custom_id",
      `custom_id must be a string of 1 to ${customIdCharactersMax} characters`,
      "custom_id",
    )
  if (value.get("method") !== "POST") return wrong("invalid_method", "method must be POST", "method")
  if (value.get("url") !== endpoint)
    return wrong("mismatched_url", `url must be the endpoint of the batch, ${endpoint}`, "url")
  const body = value.get("body")
  if (!(body instanceof JsonObject)) return wrong("invalid_body", "body must be an object", "body")
  // Events have no reader here, and what runs in the background would end after its line.
  for (const name of ["stream", "background"])
    if (body.get(name) === true)
      return wrong("invalid_body", `${name} is not possible in a batch`, `body.${name}`)
  return { customId, body }
}

const wrong = (code: BatchErrorCode, message: string, param: string | null): LineError => ({
  code,
  message,
  param,
})
