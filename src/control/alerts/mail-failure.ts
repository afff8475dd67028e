/** What is said of a mail that was not taken; apart from what sends mails, which few installations load. */

/** Why a mail was not taken, without what stands in it. */
export function mailFailure(error: unknown): { status: number | null; name: string; sentence: string } {
  const { responseCode, code } = error as { responseCode?: unknown; code?: unknown }
  const status = typeof responseCode === "number" ? responseCode : null
  const name = typeof code === "string" ? code : "failure"
  const sentence =
    status === null ? `the mail server: ${name}` : `the mail server answered ${status} (${name})`
  return { status, name, sentence }
}
