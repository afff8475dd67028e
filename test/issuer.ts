/** An OIDC issuer on loopback that a test bends as it likes: its keys, its discovery, and how it answers. */
import type { IncomingMessage, ServerResponse } from "node:http"
import { type Server, createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { type CryptoKey, type JWK, type JWTPayload, SignJWT, exportJWK, generateKeyPair } from "jose"
import { type Issued, type OpenSsl, serverExtensions } from "./openssl.ts"

export interface Signer {
  readonly kid: string
  readonly alg: string
  readonly privateKey: CryptoKey
  readonly jwk: JWK
}

export async function makeSigner(kid: string, alg = "ES256"): Promise<Signer> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } }
}

export class Issuer {
  readonly #server: Server
  keys: Signer[] = []
  /** Replaces the answer to requests for this path. */
  readonly answers = new Map<string, (message: IncomingMessage, response: ServerResponse) => void>()
  /** Paths asked for, in order. */
  readonly asked: string[] = []
  url = ""

  constructor(certificate: Issued) {
    this.#server = createServer(
      { cert: certificate.certificate, key: certificate.key },
      (message, response) => {
        const path = message.url ?? ""
        this.asked.push(path)
        const special = this.answers.get(path)
        if (special) return special(message, response)
        if (path.endsWith("/.well-known/openid-configuration"))
          return sendJson(response, { issuer: this.url, jwks_uri: `${this.url}/jwks` })
        if (path === "/jwks") return sendJson(response, { keys: this.keys.map(({ jwk }) => jwk) })
        response.statusCode = 404
        response.end()
      },
    )
  }

  /** On loopback under the name localhost, trusted through `ca`. */
  static async start(openssl: OpenSsl, ca: Issued): Promise<Issuer> {
    const issuer = new Issuer(
      openssl.issue({ subject: "/CN=localhost", issuer: ca, extensions: serverExtensions("DNS:localhost") }),
    )
    await new Promise<void>((resolve) => issuer.#server.listen(0, "localhost", resolve))
    issuer.url = `https://localhost:${(issuer.#server.address() as AddressInfo).port}`
    issuer.keys = [await makeSigner("first")]
    return issuer
  }

  get signer(): Signer {
    const [first] = this.keys
    if (!first) throw new Error("the issuer has no key")
    return first
  }

  /** A token that is right in every respect, except for what is given. */
  async token(claims: JWTPayload = {}, given: { signer?: Signer; header?: object } = {}): Promise<string> {
    const signer = given.signer ?? this.signer
    const now = Math.floor(Date.now() / 1000)
    return await new SignJWT({
      iss: this.url,
      aud: "umpire-test",
      sub: "repo:acme/app:ref:main",
      iat: now,
      nbf: now,
      exp: now + 600,
      ...claims,
    })
      .setProtectedHeader({ alg: signer.alg, kid: signer.kid, ...given.header })
      .sign(signer.privateKey)
  }

  /** The same without one of its claims. */
  async tokenWithout(claim: string): Promise<string> {
    const now = Math.floor(Date.now() / 1000)
    const claims = { iss: this.url, aud: "umpire-test", sub: "repo:acme/app", iat: now, exp: now + 600 }
    const left = Object.entries(claims).filter(([name]) => name !== claim)
    const { alg, kid, privateKey } = this.signer
    return await new SignJWT(Object.fromEntries(left)).setProtectedHeader({ alg, kid }).sign(privateKey)
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }
}

function sendJson(response: ServerResponse, body: unknown): void {
  response.setHeader("content-type", "application/json")
  response.end(JSON.stringify(body))
}
