/** The errors an endpoint can answer: its own, and those that follow from who may call it and how it reads a body. */
import { z } from "zod"
import type { Endpoint } from "./endpoint.ts"
import type { FaultCode } from "./errors.ts"

export function errorsOf(endpoint: Endpoint): FaultCode[] {
  const codes = new Set<FaultCode>(["internal", ...endpoint.errors])
  if (endpoint.access.principals.length > 0) addAll(codes, accessErrors(endpoint))
  if (endpoint.surface === "platform") addAll(codes, platformErrors(endpoint))
  return [...codes]
}

function accessErrors(endpoint: Endpoint): FaultCode[] {
  return [
    "missing_credentials",
    "invalid_credentials",
    "rate_limited",
    "permission_denied",
    "authentication_failed",
  ].concat(endpoint.access.principals.length < 3 ? ["principal_not_accepted"] : []) as FaultCode[]
}

function platformErrors(endpoint: Endpoint): FaultCode[] {
  const codes: FaultCode[] = []
  if (endpoint.path.includes("{")) codes.push("not_found")
  if (endpoint.query instanceof z.ZodObject && Object.keys(endpoint.query.shape).length > 0)
    codes.push("invalid_query")
  if (!(endpoint.body instanceof z.ZodUndefined))
    codes.push("not_json", "body_over_limit", "malformed_json", "invalid_body")
  return codes
}

function addAll(codes: Set<FaultCode>, more: readonly FaultCode[]): void {
  for (const code of more) codes.add(code)
}
