/** The mTLS port: token exchange by client certificate, each provider under a name and with trust of its own. */
import { X509Certificate, constants } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import { type Server, createServer } from "node:https"
import { DEFAULT_CIPHERS, type SecureContext, TLSSocket, createSecureContext } from "node:tls"
import { listenOn } from "./port.ts"
import type { Ids } from "../base/ids.ts"
import type { Log } from "../base/log.ts"
import { Fault } from "../contract/errors.ts"
import { exchangeToken } from "../contract/identity.ts"
import { ByteBudget } from "./byte-budget.ts"
import { readBody } from "./body.ts"
import { asFault, oauthError } from "./reply.ts"

/** Whose certificates a connection may show. */
interface Trust {
  readonly providerId: string
  readonly revision: string
  readonly anchors: readonly string[]
  readonly intermediates: readonly string[]
}

/** What the handshake found out about the client's certificate. */
interface Presented {
  readonly providerId: string | null
  readonly handshake: {
    readonly authorized: boolean
    /** Provider and revision whose certificates alone were trusted; null when that is not known. */
    readonly trusted: string | null
    readonly failure: string | null
    readonly chain: readonly X509Certificate[]
  }
}

interface MtlsDeps {
  /** The server's own certificate, with its chain, and private key, as PEM. */
  readonly certificate: string
  readonly privateKey: string
  /** The provider of this id, or the only one for null. */
  trust(providerId: string | null): Promise<Trust | null>
  exchange(
    body: { readonly bytes: Uint8Array; readonly contentType: string | null },
    request: { readonly id: string; readonly ip: string; readonly userAgent: string | null },
    presented: Presented,
  ): Promise<unknown>
  readonly ids: Ids
  readonly log: Log
}

export interface MtlsPort {
  /** Answers the port that it listens on. */
  listen(host: string, port: number): Promise<number>
  close(): Promise<void>
}

const contextsMax = 1000
const connectionsMax = 1000
const chainMax = 8
/** OpenSSL takes no more. */
const sessionContextMax = 32
const handshakeTimeoutMs = 15_000
const requestTimeoutMs = 30_000
const headTimeoutMs = 15_000
/** How long a stop waits for exchanges that run. */
const closeMs = 5000
/** Connections without a name learn of a change of the only provider within this time. */
const refreshMs = 5000
const nameForm = /^(wi-[0-9a-z]{26})(?:\.|$)/i

export async function openMtls(deps: MtlsDeps): Promise<MtlsPort> {
  const contexts = new Map<string, SecureContext>()
  const trustedBy = new WeakMap<TLSSocket, string>()
  const contextFor = (trust: Trust | null): SecureContext => {
    const key = keyOf(trust)
    const known = contexts.get(key)
    if (known) return known
    if (contexts.size >= contextsMax) contexts.delete(contexts.keys().next().value ?? "")
    const made = createSecureContext(contextOptions(deps, trust))
    contexts.set(key, made)
    return made
  }
  const server = createServer(
    {
      ...contextOptions(deps, null),
      requestCert: true,
      // A refused certificate is answered in OAuth's words instead of a broken connection, so the request comes through.
      rejectUnauthorized: false,
      handshakeTimeout: handshakeTimeoutMs,
      requestTimeout: requestTimeoutMs,
      // Node calls it as a method of the connection; were it ever not, the connection would be trusted less, not more.
      SNICallback(this: unknown, name, done) {
        const id = providerOf(name)
        const contextOf = async (): Promise<SecureContext> => {
          const trust = id === null ? null : await deps.trust(id)
          if (this instanceof TLSSocket && trust) trustedBy.set(this, keyOf(trust))
          return contextFor(trust)
        }
        contextOf().then(
          (context) => done(null, context),
          (error: unknown) => done(error instanceof Error ? error : new Error("Cannot find the provider")),
        )
      },
    },
    (message, response) => void answer(deps, message, { response, trustedBy }),
  )
  server.maxConnections = connectionsMax
  // The verdict on a certificate is as old as its connection: a request later than this needs a new one.
  server.headersTimeout = headTimeoutMs
  server.maxRequestsPerSocket = 1
  server.on("tlsClientError", (error) => deps.log.debug({ err: error }, "a TLS handshake failed"))
  const refresh = await keepUnnamed(deps, server)
  return {
    listen: async (host, port) => (await listenOn(server, host, port)).port,
    close: async () => {
      clearInterval(refresh)
      server.closeIdleConnections()
      setTimeout(() => server.closeAllConnections(), closeMs).unref()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

const keyOf = (trust: Trust | null): string => (trust ? `${trust.providerId}:${trust.revision}` : "")

/** Trust in this provider's certificates alone; an empty list trusts no certificate, while no list would mean the system's authorities. */
function contextOptions({ certificate, privateKey }: MtlsDeps, trust: Trust | null) {
  return {
    cert: certificate,
    key: privateKey,
    ca: trust ? [...trust.anchors, ...trust.intermediates] : [],
    minVersion: "TLSv1.2" as const,
    // SHA-1 and RSA keys of less than 2048 bits fail the validation of a chain from this level on.
    ciphers: `${DEFAULT_CIPHERS}:@SECLEVEL=2`,
    // A resumed session would carry a verdict from before the provider was changed.
    secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
    sessionIdContext: (trust?.providerId ?? "none").slice(0, sessionContextMax),
  }
}

/** Without SNI the context is the server's own: it follows the only active provider. */
async function keepUnnamed(deps: MtlsDeps, server: Server): Promise<NodeJS.Timeout> {
  let current = ""
  const follow = async (): Promise<void> => {
    const trust = await deps.trust(null)
    const key = keyOf(trust)
    if (key !== current) server.setSecureContext(contextOptions(deps, trust))
    current = key
  }
  await follow()
  return setInterval(() => {
    follow().catch((error: unknown) => deps.log.warn({ err: error }, "the mTLS port keeps its old trust"))
  }, refreshMs).unref()
}

/** `wi-01h....mtls.example.com` names `wi_01h...`: a host name cannot hold an underscore. */
function providerOf(serverName: string): string | null {
  return nameForm.exec(serverName)?.[1]?.toLowerCase().replace("-", "_") ?? null
}

async function answer(
  deps: MtlsDeps,
  message: IncomingMessage,
  {
    response,
    trustedBy,
  }: { readonly response: ServerResponse; readonly trustedBy: WeakMap<TLSSocket, string> },
): Promise<void> {
  const id = deps.ids.next("req")
  response.setHeader("x-request-id", id).setHeader("cache-control", "no-store")
  try {
    if (message.method !== exchangeToken.method || message.url?.split("?")[0] !== exchangeToken.path)
      throw new Fault("not_found", `Cannot find the page: this port only answers POST ${exchangeToken.path}`)
    // A token request is small, and this port has few connections: they need no budget together.
    const reader = {
      lease: new ByteBudget().lease(),
      owner: message.socket.remoteAddress ?? "",
      signal: new AbortController().signal,
    }
    const bytes = await readBody(exchangeToken, message, reader)
    const contentType = message.headers["content-type"] ?? null
    // The server speaks nothing but TLS.
    const socket = message.socket as TLSSocket
    const request = {
      id,
      ip: socket.remoteAddress ?? "",
      userAgent: message.headers["user-agent"] ?? null,
    }
    send(
      response,
      200,
      await deps.exchange(
        { bytes, contentType },
        request,
        await presentedBy(deps, socket, trustedBy.get(socket) ?? null),
      ),
    )
  } catch (error) {
    const fault = asFault(error)
    if (fault.status >= 500) deps.log.error({ request_id: id, err: fault.cause ?? fault }, fault.message)
    if (!message.complete) response.setHeader("connection", "close")
    send(response, fault.status, oauthError(fault))
  }
}

async function presentedBy(deps: MtlsDeps, socket: TLSSocket, trusted: string | null): Promise<Presented> {
  // `servername` is false where the client named none.
  const { servername } = socket as { servername?: string | false | null }
  const trust = await deps.trust(servername ? providerOf(servername) : null)
  const named = servername ? providerOf(servername) : (trust?.providerId ?? null)
  return {
    providerId: named,
    handshake: {
      authorized: socket.authorized && !socket.isSessionReused(),
      trusted,
      failure: typeof socket.authorizationError === "string" ? socket.authorizationError : null,
      chain: chainOf(socket),
    },
  }
}

/** The client's certificate and the issuers that it sent along; Node 24.21 keeps those of a valid chain to itself. */
function chainOf(socket: TLSSocket): X509Certificate[] {
  const chain: X509Certificate[] = []
  let certificate = socket.getPeerX509Certificate()
  while (certificate && chain.length < chainMax) {
    chain.push(new X509Certificate(certificate.raw))
    certificate = certificate.issuerCertificate
  }
  return chain
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.statusCode = status
  response.setHeader("content-type", "application/json; charset=utf-8")
  response.end(JSON.stringify(body))
}
