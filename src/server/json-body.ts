/** Reads a JSON body by its endpoint's schema: a small one at once, a large one in a thread. */
import type { z } from "zod"
import { keysOf } from "../base/lists.ts"
import { JsonError, checkJson } from "../base/json.ts"
import { checkJsonBounds } from "../base/json-bounds.ts"
import { task, threadBytesMin, threads } from "../base/peer/threads.ts"
import { check, problemsMax } from "../contract/check.ts"
import type { Endpoint } from "../contract/endpoint.ts"
import { type FaultCode, Fault } from "../contract/errors.ts"
import { type EndpointName, table } from "../contract/table.ts"

interface Reader {
  /** Whose large bodies are read one after the other. */
  readonly owner: string
  readonly signal: AbortSignal
}

const names = new Map<Endpoint, EndpointName>(keysOf(table).map((name) => [table[name], name]))

/** 400, 422, after the 415 and 413 of reading. */
export async function parseBody(endpoint: Endpoint, bytes: Uint8Array, reader: Reader): Promise<unknown> {
  if (endpoint.reads === "bytes") return bytes
  const name = names.get(endpoint)
  if (bytes.byteLength < threadBytesMin || name === undefined) return parseJsonBody(endpoint.body, bytes)
  return await threads.run(reader.owner, parseTask, { name, bytes }, reader.signal)
}

const parseTask = task(import.meta.url, parseNamed)

/** In a thread, which has the same table. */
export function parseNamed({ name, bytes }: { name: EndpointName; bytes: Uint8Array }): unknown {
  return parseJsonBody(table[name].body, bytes)
}

export function parseJsonBody(schema: z.ZodType, bytes: Uint8Array): unknown {
  const value = parseJson(bytes)
  return checkPart(schema, value, { code: "invalid_body", part: "body", bytes: bytes.byteLength })
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** Refuses what JSON.parse lets pass and a store would change (keys given twice, lone surrogates), and far too many values. */
function parseJson(bytes: Uint8Array): unknown {
  let text: string
  let value: unknown
  try {
    checkJsonBounds(bytes)
    text = utf8.decode(bytes)
    value = JSON.parse(text)
  } catch (error) {
    if (error instanceof JsonError) throw new Fault("invalid_body", `Cannot use the body: ${error.message}`)
    // The parser's own words quote the body, which may hold a secret.
    throw new Fault("malformed_json", "Cannot read the request: its body is not JSON")
  }
  try {
    checkJson(text)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    throw new Fault("invalid_body", `Cannot use the body: ${error.message}`)
  }
  return value
}

/** The value that the schema makes of it; a Fault names what is wrong with it. */
export function checkPart(
  schema: z.ZodType,
  value: unknown,
  { code, part, bytes }: { readonly code: FaultCode; readonly part: string; readonly bytes: number },
): unknown {
  const parsed = check(schema, value, bytes)
  if (parsed.success) return parsed.data
  const details = parsed.error.issues.slice(0, problemsMax).flatMap(describe).slice(0, problemsMax)
  const first = details[0]
  const found = first ? `${first.path || "its top"}: ${first.message}` : "it does not match the schema"
  throw new Fault(code, `Cannot use the ${part}: ${found}`, {
    details,
    ...(first?.path ? { param: first.path } : {}),
  })
}

function describe(issue: z.core.$ZodIssue): { path: string; message: string }[] {
  if (issue.code === "unrecognized_keys")
    return issue.keys
      .slice(0, problemsMax)
      .map((key) => ({ path: [...issue.path, key].join("."), message: "no such field" }))
  return [{ path: issue.path.join("."), message: issue.message }]
}
