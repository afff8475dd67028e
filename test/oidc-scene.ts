/** An issuer that can be bent, a server that trusts it, and one provider with a policy, for the tests of OIDC tokens. */
import { afterAll, afterEach, beforeAll } from "vitest"
import type { Database } from "../src/store/sql.ts"
import { openTestDatabase } from "./database.ts"
import { type Answer, type IdentityServer, startIdentityServer } from "./identity-server.ts"
import { Issuer } from "./issuer.ts"
import { OpenSsl, caExtensions } from "./openssl.ts"

export const refusedAction = "workload_identity_provider.exchange_refused"

interface OidcScene {
  /** That signs the issuer. */
  ca: ReturnType<OpenSsl["issue"]>
  database: Database
  issuer: Issuer
  server: IdentityServer
  /** Lets `repo:acme/admin:...` administer and `repo:acme/app:...` decide; refuses the rest. */
  providerId: string
  providersPath: string
}

/** Set up before the tests of a file and taken down after them. */
export function useOidcScene(): OidcScene {
  // Filled before the first test runs.
  const scene = {} as OidcScene
  let openssl: OpenSsl
  beforeAll(async () => {
    openssl = new OpenSsl()
    const ca = openssl.issue({ subject: "/CN=Issuer CA", extensions: caExtensions })
    scene.ca = ca
    scene.database = await openTestDatabase()
    scene.issuer = await Issuer.start(openssl, ca)
    scene.server = await startIdentityServer(scene.database, { ca, fetchTimeoutMs: 60_000 })
    scene.providersPath = `/v1/organizations/${scene.server.organizationId}/workload_identity/providers`
    scene.providerId = await scene.server.provide({
      config: oidc(scene.issuer.url),
      attribute_condition: "assertion.sub.startsWith('repo:')",
      attribute_transformations: { repo: "assertion.sub.split(':')[1]" },
      authorization_rules: [
        { condition: "attribute.repo == 'acme/admin'", permissions: ["inference", "api-admin"] },
        { condition: "attribute.repo == 'acme/app'", permissions: ["inference"] },
        { condition: "true", permissions: [] },
      ],
    })
  })
  // An organization has 20 providers at most: what a test made goes with it.
  afterEach(async () => {
    const { server, providersPath, providerId } = scene
    for (const { id } of (await server.send("GET", providersPath)).body.data as { id: string }[])
      if (id !== providerId) await server.send("DELETE", `${providersPath}/${id}`)
  })
  afterAll(async () => {
    await scene.server.close()
    await scene.issuer.close()
    await scene.database.close()
    openssl.close()
  })
  return scene
}

export const oidc = (issuerUrl: string, more: object = {}) => ({
  type: "oidc",
  issuer_uri: issuerUrl,
  allowed_audiences: ["umpire-test", "other"],
  ...more,
})

export const nowSeconds = (): number => Math.floor(Date.now() / 1000)
export const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url")
export const payloadOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Record<string, unknown>

/** Reads the providers with a bearer value, which needs api-admin. */
export const listWith = async ({ server, providersPath }: OidcScene, bearer: string): Promise<Answer> =>
  await server.send("GET", providersPath, undefined, { bearer })
