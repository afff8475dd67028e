/** Sends one event to one receiver: bounded in time, no redirects, and only to addresses that may be reached. */
import { createHmac } from "node:crypto"
import type { Agent } from "undici"
import { AddressRefused, isPrivate, literalAddress, lookupWhere } from "../../base/addresses.ts"
import { later } from "../../base/memo.ts"
import { undici } from "../../base/undici.ts"

/** A receiver that needs longer should answer first and work afterwards. */
const timeoutMsDefault = 10_000
/** What a receiver answers is not kept; a short answer is read so that it need not see its connection reset. */
const answerBytesMax = 16 * 1024
const answerMsMax = 1_000

interface SenderSettings {
  readonly allowPrivate: boolean
  readonly timeoutMs?: number
}

export interface Sent {
  /** Null when there was no answer. */
  readonly status: number | null
  /** Null when it was delivered. */
  readonly error: string | null
}

export interface WebhookSender {
  send(url: string, body: string, headers: Readonly<Record<string, string>>, stop: AbortSignal): Promise<Sent>
  close(): Promise<void>
}

export function createWebhookSender({
  allowPrivate,
  timeoutMs = timeoutMsDefault,
}: SenderSettings): WebhookSender {
  const agents: Agent[] = []
  // Without keep-alive: each attempt resolves the name, checks the addresses and connects to one of them.
  const open = (lookup: ReturnType<typeof lookupWhere> | null): Agent => {
    const { Agent } = undici()
    const agent = new Agent({ pipelining: 0, connect: { timeout: timeoutMs, ...(lookup ? { lookup } : {}) } })
    agents.push(agent)
    return agent
  }
  const secure = later(() =>
    open(allowPrivate ? null : lookupWhere((address) => !isPrivate(address), privateRefusal)),
  )
  const plain = later(() => open(lookupWhere(isPrivate, "HTTP is for private addresses only")))
  return {
    async send(url, body, headers, stop) {
      const refusal = urlRefusal(url, allowPrivate)
      if (refusal !== null) return { status: null, error: refusal }
      const dispatcher = url.startsWith("http:") ? plain() : secure()
      const timeout = AbortSignal.timeout(timeoutMs)
      try {
        const status = await post(url, body, {
          headers,
          dispatcher,
          signal: AbortSignal.any([timeout, stop]),
        })
        return { status, error: statusError(status) }
      } catch (error) {
        if (stop.aborted) throw error
        const isLate = timeout.aborted || /Timeout/.test(error instanceof Error ? error.name : "")
        return { status: null, error: isLate ? `no answer within ${timeoutMs} ms` : reasonOf(error) }
      }
    },
    close: async () => void (await Promise.all(agents.map(async (agent) => await agent.destroy()))),
  }
}

async function post(
  url: string,
  text: string,
  {
    headers,
    dispatcher,
    signal,
  }: { headers: Readonly<Record<string, string>>; dispatcher: Agent; signal: AbortSignal },
): Promise<number> {
  const { statusCode, body } = await undici().request(url, {
    method: "POST",
    body: text,
    headers: { "content-type": "application/json", "user-agent": "Umpire", ...headers },
    dispatcher,
    signal,
  })
  // The status decides; a body that is long, or comes slowly, is not waited for.
  await body
    .dump({ limit: answerBytesMax, signal: AbortSignal.any([signal, AbortSignal.timeout(answerMsMax)]) })
    .catch(() => body.once("error", () => {}).destroy())
  return statusCode
}

function statusError(status: number): string | null {
  if (status >= 200 && status < 300) return null
  const redirect = status >= 300 && status < 400 ? "; redirects are not followed" : ""
  return `the receiver answered ${status}${redirect}`
}

const reasons: Readonly<Record<string, string>> = {
  ENOTFOUND: "the name cannot be resolved",
  EAI_AGAIN: "the name cannot be resolved now",
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was reset",
  UND_ERR_SOCKET: "the connection was closed",
}

/** In a phrase without addresses: what a name resolves to is not the organization's to know. */
function reasonOf(error: unknown): string {
  if (error instanceof AddressRefused) return error.message
  if (error instanceof Error && error.cause instanceof AddressRefused) return error.cause.message
  const code = error instanceof Error && "code" in error ? String(error.code) : ""
  return reasons[code] ?? `the receiver cannot be reached${code === "" ? "" : ` (${code})`}`
}

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

const privateRefusal = "the address is private"

/** One `v1` for each secret: while a rotated one is still accepted, receivers may know either. */
export function signatureOf(body: string, secrets: readonly string[], nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000)
  const signatures = secrets.map((secret) =>
    createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex"),
  )
  return [`t=${seconds}`, ...signatures.map((signature) => `v1=${signature}`)].join(",")
}
