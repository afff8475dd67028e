/** Why an assertion was not accepted: a sentence for the caller and the audit log, free of what the assertion holds. */
export class Refusal extends Error {
  override readonly name = "Refusal"

  constructor(reason: string, cause?: unknown) {
    super(reason, cause === undefined ? undefined : { cause })
  }
}

/** A token or certificate that was checked. */
export interface Assertion {
  readonly claims: Readonly<Record<string, unknown>>
  /** Unix milliseconds after which it is worth nothing. */
  readonly expiresMs: number
  /** What the audit log calls the workload. */
  readonly subject: string | null
}
