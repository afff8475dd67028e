/** What the API refused of a form's fields, in words: the names that it gives fields are for programs. */
import { t, tn } from "../i18n/translate.ts"

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
    if (isEmpty) return t("cannot be empty")
    return boundWords(sign ?? "", Number(limit), what)
  }
  if (message === "missing") return t("is needed")
  if (message.startsWith("Invalid")) return t("is not valid")
  return message
}

/** "at least 8 characters are needed". */
function boundWords(sign: string, limit: number, what: string): string {
  if (what === "string")
    return sign.startsWith(">")
      ? tn(limit, "at least {count} character is needed", "at least {count} characters are needed")
      : tn(limit, "at most {count} character is needed", "at most {count} characters are needed")
  if (what === "array")
    return sign.startsWith(">")
      ? tn(limit, "at least {count} entry is needed", "at least {count} entries are needed")
      : tn(limit, "at most {count} entry is needed", "at most {count} entries are needed")
  if (sign === ">=") return tn(limit, "at least {count} is needed", "at least {count} are needed")
  if (sign === ">") return tn(limit, "more than {count} is needed", "more than {count} are needed")
  if (sign === "<=") return tn(limit, "at most {count} is needed", "at most {count} are needed")
  return tn(limit, "less than {count} is needed", "less than {count} are needed")
}
