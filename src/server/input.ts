/** Turns the parts of an HTTP request into what an endpoint's schemas say. */
import { z } from "zod"
import type { Endpoint } from "../contract/endpoint.ts"
import { Fault, type FaultCode } from "../contract/errors.ts"

/** Enough to correct a request by; a hostile body could have thousands. */
const issuesMax = 20

export function parseParams(endpoint: Endpoint, params: unknown): unknown {
  if (asksNothing(endpoint.params)) return nothing
  const parsed = endpoint.params.safeParse(params)
  // An id that cannot exist is an id that is not visible; the store cannot even be asked about U+0000.
  if (!parsed.success || Object.values(params as object).some((value) => String(value).includes("\u0000")))
    throw new Fault("not_found", "Cannot find the resource: no such id is visible to this principal")
  return parsed.data
}

export function parseQuery(endpoint: Endpoint, search: URLSearchParams): unknown {
  if (asksNothing(endpoint.query) || !(endpoint.query instanceof z.ZodObject)) return nothing
  const values: Record<string, string | string[]> = {}
  for (const [name, schema] of Object.entries(endpoint.query.shape)) {
    const given = search.getAll(name)
    if (given.length === 0) continue
    if (given.some((value) => value.includes("\u0000"))) throw badQuery(name, "holds U+0000")
    if (acceptsList(schema as z.ZodType)) values[name] = given
    else if (given.length === 1 && given[0] !== undefined) values[name] = given[0]
    else throw badQuery(name, "is given more than once")
  }
  return check(endpoint.query, values, "invalid_query", "query")
}

const nothing: Readonly<Record<string, never>> = Object.freeze({})

/** Whether a schema has no fields, as those of most endpoints for inference: then there is nothing to be read. */
const asksNothing = remembered(
  (schema) => schema instanceof z.ZodObject && Object.keys(schema.shape).length === 0,
)

const isAbsent = remembered((schema) => schema instanceof z.ZodUndefined)

export const takesNoBody = ({ body }: Endpoint): boolean => isAbsent(body)

/** Asking what a schema is takes a while, and no schema ever becomes another one. */
function remembered(test: (schema: z.ZodType) => boolean): (schema: z.ZodType) => boolean {
  const known = new WeakMap<z.ZodType, boolean>()
  return (schema) => {
    let found = known.get(schema)
    if (found === undefined) known.set(schema, (found = test(schema)))
    return found
  }
}

function badQuery(name: string, found: string): Fault {
  return new Fault("invalid_query", `Cannot read the query: ${name} ${found}`, {
    details: [{ path: name, message: found }],
  })
}

export function parseBody(endpoint: Endpoint, body: unknown): unknown {
  if (endpoint.surface === "openai") return checkParameters(endpoint.body, body)
  return check(endpoint.body, body, "invalid_body", "body")
}

/** OpenAI's clients read `code` and `param`: what is unknown, unsupported and merely wrong have codes of their own. */
export function checkParameters(schema: z.ZodType, value: unknown): unknown {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = deepest(parsed.error.issues)
  const [found] = issue ? describe(issue) : []
  const param = found?.path ?? ""
  throw new Fault(
    codeOf(issue),
    `Cannot use ${param || "the request"}: ${found?.message ?? "it does not match the schema"}`,
    param === "" ? {} : { param },
  )
}

/** Of the ways in which a union can fail, the one that got furthest says best what is wrong. */
function deepest(issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue | undefined {
  const [issue] = issues
  if (issue?.code !== "invalid_union" || issue.errors.length === 0 || issue.message !== unionMessage)
    return issue
  const candidates = issue.errors.map((option) => deepest(option)).filter((one) => one !== undefined)
  const best = candidates.toSorted((a, b) => b.path.length - a.path.length)[0]
  return best ? { ...best, path: [...issue.path, ...best.path] } : issue
}

const unionMessage = "Invalid input"

function codeOf(issue: z.core.$ZodIssue | undefined): FaultCode {
  if (issue?.code === "unrecognized_keys") return "unknown_parameter"
  if (issue?.code === "custom" && issue.params?.["fault"] === "unsupported_parameter")
    return "unsupported_parameter"
  return "invalid_request"
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
