/** Events as receivers see them: a JSON body, and the signature over it. */
import { createHmac } from "node:crypto"

interface EventFacts {
  readonly id: string
  readonly type: string
  readonly at: Date
  readonly organizationId: string
  readonly data: Readonly<Record<string, unknown>>
}

export function eventBody({ id, type, at, organizationId, data }: EventFacts): string {
  return JSON.stringify({ id, type, created: at.toISOString(), organization_id: organizationId, data })
}

/** One `v1` for each secret: while a rotated one is still accepted, receivers may know either. */
export function signatureOf(body: string, secrets: readonly string[], nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000)
  const signatures = secrets.map((secret) =>
    createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex"),
  )
  return [`t=${seconds}`, ...signatures.map((signature) => `v1=${signature}`)].join(",")
}
