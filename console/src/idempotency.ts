/** Gives every write an Idempotency-Key: the same one again until the server has answered, so that a repeat changes nothing. */

/** Endpoints whose writes the server remembers; inference is not among them. */
const remembered = /^\/v1\/(?:organizations|billing_accounts|invites|session)\b/
const unansweredMax = 50
const keyBytes = 16

/** Keys of writes that were sent and not answered yet, by method, address and body. */
const unanswered = new Map<string, string>()

export function withIdempotencyKeys(fetcher: typeof fetch): typeof fetch {
  return async (input, init) => {
    const method = init?.method ?? "GET"
    const address = new URL(input instanceof Request ? input.url : input, location.origin)
    if (method === "GET" || !remembered.test(address.pathname)) return await fetcher(input, init)
    const write = [method, address.href, typeof init?.body === "string" ? init.body : ""].join("\n")
    const key = unanswered.get(write) ?? newKey()
    unanswered.set(write, key)
    forgetOldest()
    const headers = new Headers(init?.headers)
    headers.set("idempotency-key", key)
    const response = await fetcher(input, { ...init, headers })
    unanswered.delete(write)
    return response
  }
}

function forgetOldest(): void {
  const [oldest] = unanswered.keys()
  if (oldest !== undefined && unanswered.size > unansweredMax) unanswered.delete(oldest)
}

/** `crypto.randomUUID` is missing on plain http addresses of a network. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(keyBytes))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")
}
