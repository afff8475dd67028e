/** Fetches JSON from an address that a customer chose: HTTPS only, no redirects, no private addresses, bounded in size and time. */
import type { Readable } from "node:stream"
import type { Agent } from "undici"
import { AddressRefused, isPrivate, literalAddress, lookupWhere } from "../../base/addresses.ts"
import { undici } from "../../base/undici.ts"
import { Refusal } from "./refusal.ts"

const bytesMax = 1024 * 1024
const timeoutMsDefault = 5000
const connectionsMax = 8
const keepAliveMs = 4000

interface FetchOptions {
  /** Reach loopback and private networks too. */
  readonly allowPrivate: boolean
  /** PEM certificates to trust instead of the usual authorities. */
  readonly ca?: string | undefined
  readonly timeoutMs?: number
}

export interface JsonFetcher {
  fetch(address: string): Promise<unknown>
  close(): Promise<void>
}

export function createJsonFetcher({
  allowPrivate,
  ca,
  timeoutMs = timeoutMsDefault,
}: FetchOptions): JsonFetcher {
  let agent: Agent | undefined
  const open = (): Agent =>
    new (undici().Agent)({
      connections: connectionsMax,
      keepAliveTimeout: keepAliveMs,
      connect: {
        timeout: timeoutMs,
        ...(ca === undefined ? {} : { ca }),
        ...(allowPrivate ? {} : { lookup: lookupWhere((one) => !isPrivate(one), privateSentence) }),
      },
    })
  return {
    async fetch(address) {
      const url = checkAddress(address, allowPrivate)
      try {
        return await get(url, (agent ??= open()), AbortSignal.timeout(timeoutMs))
      } catch (error) {
        if (error instanceof Refusal) throw error
        if (error instanceof AddressRefused) throw new Refusal(privateSentence, error)
        const late = error instanceof Error && (error.name === "TimeoutError" || error.name === "AbortError")
        throw new Refusal(
          late ? "the issuer's server does not answer in time" : "the issuer's server cannot be reached",
          error,
        )
      }
    },
    close: async () => await agent?.destroy(),
  }
}

async function get(url: URL, agent: Agent, signal: AbortSignal): Promise<unknown> {
  const { statusCode, headers, body } = await undici().request(url, {
    dispatcher: agent,
    signal,
    headers: { accept: "application/json" },
  })
  if (statusCode !== 200) {
    discard(body)
    const redirect = statusCode >= 300 && statusCode < 400 ? "; redirects are not followed" : ""
    throw new Refusal(`the issuer's server answers ${statusCode}${redirect}`)
  }
  const tooLarge = new Refusal(`the issuer's server answers more than ${bytesMax} bytes`)
  if (Number(headers["content-length"] ?? 0) > bytesMax) {
    discard(body)
    throw tooLarge
  }
  const chunks: Uint8Array[] = []
  let size = 0
  // Without an encoding, a body gives bytes.
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    size += chunk.length
    // Leaving the loop destroys the body.
    if (size > bytesMax) throw tooLarge
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks, size).toString("utf8"))
  } catch (cause) {
    throw new Refusal("the issuer's server does not answer JSON", cause)
  }
}

/** Destroying an unread body emits an error event; without a listener it would end the process. */
function discard(body: Readable): void {
  body.once("error", () => {}).destroy()
}

/** An address that is a number never reaches the lookup, so it is checked here. */
function checkAddress(address: string, allowPrivate: boolean): URL {
  const url = URL.parse(address)
  if (url?.protocol !== "https:" || url.username !== "" || url.password !== "")
    throw new Refusal("the issuer's keys are not at an HTTPS address")
  const literal = literalAddress(url)
  if (!allowPrivate && literal !== null && isPrivate(literal)) throw new Refusal(privateSentence)
  return url
}

const privateSentence = "the issuer's keys are at a private address"
