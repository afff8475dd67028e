/** What the API refused of a form's fields, in words: the names that it gives fields are for programs. */

interface Problem {
  readonly path: string
  readonly message: string
}

/** Of the error's body; none where it names no fields. */
export function problemsOf(body: unknown): Problem[] {
  const details = (body as { error?: { details?: unknown } } | null)?.error?.details
  if (!Array.isArray(details)) return []
  // Every error of the API has its details in this form.
  return details as Problem[]
}

/** “rate_limit.burst: Too small: expected number to be >=1” is “Burst: at least 1 is needed”. */
export function problemWords({ path, message }: Problem): string {
  const name = path
    .split(".")
    .findLast((step) => !/^\d+$/.test(step))
    ?.replace(/_cents$/, "")
    .replaceAll("_", " ")
  if (!name) return messageWords(message)
  return `${name.slice(0, 1).toUpperCase()}${name.slice(1)}: ${messageWords(message)}`
}

/** The schemas' own messages; those that we wrote are words already. */
function messageWords(message: string): string {
  const [, size, what, sign, limit] =
    /^Too (small|big): expected (\w+) .*?([<>]=?)\s*(-?[\d.]+)/.exec(message) ?? []
  if (size !== undefined && what !== undefined && limit !== undefined) {
    const isEmpty = size === "small" && limit === "1" && what !== "number" && what !== "int"
    if (isEmpty) return "cannot be empty"
    const unit = { string: " characters", array: " entries" }[what] ?? ""
    const bound =
      { ">=": "at least ", ">": "more than ", "<=": "at most ", "<": "less than " }[sign ?? ""] ?? ""
    return `${bound}${limit}${unit} ${limit === "1" ? "is" : "are"} needed`
  }
  if (message === "missing") return "is needed"
  if (message.startsWith("Invalid")) return "is not valid"
  return message
}
