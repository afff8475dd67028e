/** Fetches JSON from an address that a customer chose: HTTPS only, no redirects, no private addresses, bounded in size and time. */
import { lookup as systemLookup } from "node:dns"
import { BlockList, type LookupFunction, isIP, isIPv6 } from "node:net"
import type { Readable } from "node:stream"
import { Agent, request } from "undici"
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
  const agent = new Agent({
    connections: connectionsMax,
    keepAliveTimeout: keepAliveMs,
    connect: {
      timeout: timeoutMs,
      ...(ca === undefined ? {} : { ca }),
      ...(allowPrivate ? {} : { lookup: publicLookup }),
    },
  })
  return {
    async fetch(address) {
      const url = checkAddress(address, allowPrivate)
      try {
        return await get(url, agent, AbortSignal.timeout(timeoutMs))
      } catch (error) {
        if (error instanceof Refusal) throw error
        const late = error instanceof Error && (error.name === "TimeoutError" || error.name === "AbortError")
        throw new Refusal(
          late ? "the issuer's server does not answer in time" : "the issuer's server cannot be reached",
          error,
        )
      }
    },
    close: async () => await agent.destroy(),
  }
}

async function get(url: URL, agent: Agent, signal: AbortSignal): Promise<unknown> {
  const { statusCode, headers, body } = await request(url, {
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
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    size += chunk.length
    // Leaving the loop destroys the body.
    if (size > bytesMax) throw tooLarge
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks, size).toString("utf8")) as unknown
  } catch (cause) {
    throw new Refusal("the issuer's server does not answer JSON", cause)
  }
}

/** What is destroyed unread ends in an error event, which nobody else would take. */
function discard(body: Readable): void {
  body.once("error", () => {}).destroy()
}

/** An address that is a number never reaches the lookup, so it is checked here. */
function checkAddress(address: string, allowPrivate: boolean): URL {
  const url = URL.parse(address)
  if (url?.protocol !== "https:" || url.username !== "" || url.password !== "")
    throw new Refusal("the issuer's keys are not at an HTTPS address")
  const host = url.hostname.replace(/^\[|\]$/g, "")
  if (!allowPrivate && isIP(host) !== 0 && isPrivate(host)) throw privateRefusal()
  return url
}

const privateRefusal = (): Refusal => new Refusal("the issuer's keys are at a private address")

/** Checks the addresses that the connection is about to use, so that a name cannot change its meaning in between. */
const publicLookup: LookupFunction = (hostname, options, done) => {
  systemLookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return done(error, "", 0)
    if (addresses.some(({ address }) => isPrivate(address))) return done(privateRefusal(), "", 0)
    if (options.all) return done(null, addresses)
    const [first] = addresses
    done(null, first?.address ?? "", first?.family ?? 0)
  })
}

export function isPrivate(address: string): boolean {
  return notPublic.check(address, isIPv6(address) ? "ipv6" : "ipv4")
}

/** The special-purpose ranges of IANA's registries that are not reachable, or not meant to be, over the internet. */
const notPublic = new BlockList()
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const)
  notPublic.addSubnet(network, prefix, "ipv4")
for (const [network, prefix] of [
  ["::", 128],
  ["::1", 128],
  // IPv4 behind a translator; an IPv4 address mapped into IPv6 is held to the rules above.
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2002::", 16],
  ["100::", 64],
  ["2001::", 23],
  ["2001:db8::", 32],
  ["3fff::", 20],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
] as const)
  notPublic.addSubnet(network, prefix, "ipv6")
