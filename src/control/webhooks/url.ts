/** Which addresses events may be sent to. */
import { isPrivate, literalAddress } from "../../base/public-address.ts"

/** Why the URL cannot be used, in a phrase; null when it can. Names are checked once more when they are resolved. */
export function urlRefusal(text: string, allowPrivate: boolean): string | null {
  const url = URL.parse(text)
  if (url === null) return "it is no URL"
  const literal = literalAddress(url)
  const isPrivateLiteral = literal !== null && isPrivate(literal)
  if (url.protocol === "http:") {
    if (!allowPrivate) return "HTTPS is needed"
    // Public addresses are only reached over TLS.
    return literal !== null && !isPrivateLiteral ? "HTTP is for private addresses only" : null
  }
  if (url.protocol !== "https:") return "HTTPS is needed"
  return isPrivateLiteral && !allowPrivate ? privateRefusal : null
}

export const privateRefusal = "the address is private"
