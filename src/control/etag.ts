/** The version of a resource: shown as its ETag, and what If-Match may ask for. */
import type { RequestFacts } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"

/** 412 when If-Match names another version; a request without the header takes what is there. */
export function checkVersion(request: RequestFacts, version: bigint): void {
  const given = request.header("if-match")
  if (given === null || given.trim() === "*") return
  const named = given.split(",").map((tag) => tag.trim().replace(/^W\//, "").replaceAll('"', ""))
  if (named.includes(String(version))) return
  throw new Fault(
    "precondition_failed",
    "Cannot change the resource: it was changed since it was read; read it again and repeat",
  )
}

export const etag = (version: bigint): string => `"${version}"`
