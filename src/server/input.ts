/** Turns the parts of an HTTP request into what an endpoint's schemas say. */
import { z } from "zod"
import type { Endpoint } from "../contract/endpoint.ts"
import { Fault, type FaultCode } from "../contract/errors.ts"

/** Enough to correct a request by; a hostile body could have thousands. */
const issuesMax = 20

export function parseParams(endpoint: Endpoint, params: unknown): unknown {
  const parsed = endpoint.params.safeParse(params)
  // An id that cannot exist is an id that is not visible.
  if (!parsed.success)
    throw new Fault("not_found", "Cannot find the resource: no such id is visible to this principal")
  return parsed.data
}

export function parseQuery(endpoint: Endpoint, search: URLSearchParams): unknown {
  if (!(endpoint.query instanceof z.ZodObject)) return {}
  const values: Record<string, string | string[]> = {}
  for (const [name, schema] of Object.entries(endpoint.query.shape)) {
    const given = search.getAll(name)
    if (given.length === 0) continue
    if (acceptsList(schema as z.ZodType)) values[name] = given
    else if (given.length === 1 && given[0] !== undefined) values[name] = given[0]
    else
      throw new Fault("invalid_query", `Cannot read the query: ${name} is given more than once`, {
        details: [{ path: name, message: "given more than once" }],
      })
  }
  return check(endpoint.query, values, "invalid_query", "query")
}

export function parseBody(endpoint: Endpoint, body: unknown): unknown {
  return check(endpoint.body, body, "invalid_body", "body")
}

function check(schema: z.ZodType, value: unknown, code: FaultCode, part: string): unknown {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const details = parsed.error.issues.slice(0, issuesMax).flatMap(describe)
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
      .slice(0, issuesMax)
      .map((key) => ({ path: [...issue.path, key].join("."), message: "no such field" }))
  return [{ path: issue.path.join("."), message: issue.message }]
}

function acceptsList(schema: z.ZodType): boolean {
  if (schema instanceof z.ZodArray) return true
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)
    return acceptsList(schema.unwrap() as z.ZodType)
  return false
}
