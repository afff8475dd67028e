/** Finds the bearer value of a request: in the Authorization header, or in the session cookie of the console. */
import type { Endpoint, RequestFacts } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { isWrite } from "../contract/implied-errors.ts"

const sessionCookie = "umpire_session"

/** A page of another site cannot send it without asking first, and it is never told that it may. */
const csrfHeader = "x-umpire-csrf"

export interface Credentials {
  readonly bearer: string
  readonly source: "header" | "cookie"
}

/** Null when none are given. A malformed Authorization header is refused rather than ignored. */
export function readCredentials(endpoint: Endpoint, facts: RequestFacts): Credentials | null {
  const given = facts.header("authorization")
  if (given !== null) {
    const bearer = bearerOf(given)
    if (!bearer) throw missing()
    return { bearer, source: "header" }
  }
  const bearer = readCookie(facts, sessionCookie)
  if (bearer === null) return null
  // A socket is opened with GET, and what is said over it costs money.
  const needsProof = isWrite(endpoint) || facts.header("upgrade") !== null
  if (!needsProof || isFromOurPage(facts)) return { bearer, source: "cookie" }
  // Whoever may call without credentials may also call with a cookie that does not count.
  if (endpoint.access.principals.length === 0) return null
  throw new Fault(
    "csrf_refused",
    `Cannot use the session cookie: the request does not come from this site; send the header ${csrfHeader}`,
  )
}

/** Undefined when the header is of another form. */
function bearerOf(header: string): string | undefined {
  // As nearly every client writes it.
  if (header.startsWith("Bearer ") && !header.includes(" ", "Bearer ".length))
    return header.slice("Bearer ".length) || undefined
  return /^Bearer +(\S+) *$/i.exec(header)?.[1]
}

export function missing(): Fault {
  return new Fault(
    "missing_credentials",
    "Cannot authenticate: the Authorization header holds no bearer value; send Authorization: Bearer <key>",
  )
}

function readCookie(facts: RequestFacts, name: string): string | null {
  for (const pair of (facts.header("cookie") ?? "").split(";")) {
    const [key, value] = pair.trim().split("=", 2)
    if (key === name && value) return value
  }
  return null
}

/** Browsers send cookies whoever wrote the page, so a write must show that the page is ours. */
function isFromOurPage(facts: RequestFacts): boolean {
  if (facts.header(csrfHeader) !== null) return true
  const origin = facts.header("origin")
  return origin !== null && hostOf(origin) === facts.header("host")
}

function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null
}
