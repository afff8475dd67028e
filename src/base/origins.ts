/** Which web pages may call an endpoint that reads no cookies: those of this machine, of the server, and those that are listed. */

const loopbackHosts = new Set(["localhost", "127.0.0.1", "[::1]"])

/** The origins of a list separated by commas; null where one is none. */
export function parseOrigins(list: string): string[] | null {
  const given = list
    .split(",")
    .map((one) => one.trim())
    .filter((one) => one !== "")
  const origins = given.map(originOf)
  return origins.every((one) => one !== null) ? origins : null
}

/** `publicUrl` is known once the server listens. */
export function originCheck(
  allowed: readonly string[],
  publicUrl: () => string,
): (origin: string) => boolean {
  return (given) => {
    const origin = originOf(given)
    if (origin === null) return false
    return (
      loopbackHosts.has(new URL(origin).hostname) ||
      origin === originOf(publicUrl()) ||
      allowed.includes(origin)
    )
  }
}

/** Null for what is no origin of a page: "null" of a sandboxed one too. */
function originOf(text: string): string | null {
  if (!URL.canParse(text)) return null
  const { origin, protocol } = new URL(text)
  return protocol === "http:" || protocol === "https:" ? origin : null
}
