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
  if (isWrite(endpoint) && endpoint.access.principals.length > 0)
    codes.push("conflict", "idempotency_key_reused", "invalid_header")
  if (isWrite(endpoint) && endpoint.access.principals.includes("session")) codes.push("csrf_refused")
  if (endpoint.path.includes("{")) codes.push("not_found")
  if (endpoint.query instanceof z.ZodObject && Object.keys(endpoint.query.shape).length > 0)
    codes.push("invalid_query")
  if (!(endpoint.body instanceof z.ZodUndefined))
    codes.push("not_json", "body_over_limit", "malformed_json", "invalid_body")
  return codes
}

/** Writes take an Idempotency-Key where their caller is known, and cookies only from our own pages. */
export function isWrite({ method }: Endpoint): boolean {
  return method !== "GET"
}

function addAll(codes: Set<FaultCode>, more: readonly FaultCode[]): void {
  for (const code of more) codes.add(code)
}
