/** Client certificates on the mTLS port, with chains made by openssl: what is let in, and every known way of not deserving it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Database } from "../src/store/sql.ts"
import { openTestDatabase } from "./database.ts"
import {
  type Answer,
  type IdentityServer,
  everyone,
  exchangeCertificate,
  startIdentityServer,
} from "./identity-server.ts"
import {
  type CertificateOptions,
  type Issued,
  OpenSsl,
  caExtensions,
  clientExtensions,
  serverExtensions,
} from "./openssl.ts"

let database: Database
let openssl: OpenSsl
let server: IdentityServer
let serverCa: Issued
let root: Issued
let intermediate: Issued
let otherRoot: Issued
let providerId: string
let otherId: string

const refusedAction = "workload_identity_provider.exchange_refused"
const spiffe = "spiffe://acme.example/ns/prod/sa/api"
const sans = `subjectAltName=URI:${spiffe},DNS:api.acme.example,email:api@acme.example,IP:10.0.0.7`

beforeAll(async () => {
  database = await openTestDatabase()
  openssl = new OpenSsl()
  serverCa = openssl.issue({ subject: "/CN=Server CA", extensions: caExtensions })
  const mtls = openssl.issue({
    subject: "/CN=mtls",
    issuer: serverCa,
    extensions: serverExtensions("DNS:*.mtls.example", "IP:127.0.0.1"),
  })
  root = openssl.issue({ subject: "/O=Acme/CN=Acme Root", extensions: caExtensions })
  intermediate = openssl.issue({ subject: "/O=Acme/CN=Acme Issuing", issuer: root, extensions: caExtensions })
  otherRoot = openssl.issue({ subject: "/O=Other/CN=Other Root", extensions: caExtensions })
  server = await startIdentityServer(database, { mtls })
  providerId = await provide([root], [intermediate])
  otherId = await provide([otherRoot])
})
afterAll(async () => {
  await server.close()
  await database.close()
  openssl.close()
})

async function provide(
  anchors: Issued[],
  intermediates: Issued[] = [],
  changes: object = {},
): Promise<string> {
  return await server.provide({
    config: {
      type: "x509",
      trust_anchors: anchors.map(({ certificate }) => certificate),
      intermediate_cas: intermediates.map(({ certificate }) => certificate),
    },
    authorization_rules: everyone("inference", "api-admin"),
    ...changes,
  })
}

const client = (changes: Partial<CertificateOptions> = {}): Issued =>
  openssl.issue({
    subject: "/O=Acme/CN=api",
    issuer: intermediate,
    extensions: [...clientExtensions, sans],
    ...changes,
  })
const nameOf = (id: string) => `${id.replace("_", "-")}.mtls.example`
const chain = (leaf: Issued, ...more: Issued[]) => ({
  certificate: [leaf, ...more].map(({ certificate }) => certificate).join(""),
  key: leaf.key,
})
const exchange = async (
  presented: { certificate: string; key: string } | null,
  more: { name?: string | null; parameters?: Record<string, string>; weak?: boolean } = {},
): Promise<Answer> =>
  await exchangeCertificate({
    port: server.mtlsPort,
    ca: serverCa,
    name: more.name === undefined ? nameOf(providerId) : more.name,
    ...(presented ? { client: presented } : {}),
    ...(more.parameters ? { parameters: more.parameters } : {}),
    ...(more.weak ? { weak: true } : {}),
  })

describe("a certificate that deserves it", () => {
  test("is exchanged for an access token that the API accepts", async () => {
    const answer = await exchange(chain(client()))
    expect(answer).toMatchObject({ status: 200, body: { token_type: "Bearer", expires_in: 900 } })
    const path = `/v1/organizations/${server.organizationId}/workload_identity/providers`
    const bearer = answer.body.access_token as string
    expect(await server.send("GET", path, undefined, { bearer })).toMatchObject({ status: 200 })
  })

  test("may bring its own intermediate, or come straight from the anchor", async () => {
    const own = openssl.issue({ subject: "/CN=Own Issuing", issuer: root, extensions: caExtensions })
    expect((await exchange(chain(client({ issuer: own }), own))).body).toMatchObject({ token_type: "Bearer" })
    expect(await exchange(chain(client({ issuer: root })))).toMatchObject({ status: 200 })
  })

  test("may have an RSA key of 2048 bits", async () => {
    const newKey = ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]
    expect(await exchange(chain(client({ newKey })))).toMatchObject({ status: 200 })
  })

  test("is seen by the rules with its names, serial and fingerprint", async () => {
    const leaf = client()
    const id = await provide([root], [intermediate], {
      attribute_condition: `assertion.spiffe_id == '${spiffe}' && 'api.acme.example' in assertion.sans.dns`,
      attribute_transformations: { email: "assertion.sans.email[0]", ip: "assertion.sans.ip[0]" },
      authorization_rules: [
        {
          condition: [
            "assertion.subject.CN == 'api' && assertion.subject.O == 'Acme'",
            "assertion.issuer.CN == 'Acme Issuing' && assertion.subject_dn == 'O=Acme, CN=api'",
            "assertion.serial.matches('^[0-9a-f]+$') && assertion.fingerprint.matches('^[0-9a-f]{64}$')",
            "timestamp(assertion.not_after) > timestamp(assertion.not_before)",
            "attribute.email == 'api@acme.example' && attribute.ip == '10.0.0.7'",
          ].join(" && "),
          permissions: ["inference"],
        },
        ...everyone(),
      ],
    })
    expect(await exchange(chain(leaf), { name: nameOf(id) })).toMatchObject({ status: 200 })
  })

  test("limits the token to what is left of the shortest certificate in its chain", async () => {
    const minutes = 5 / (24 * 60)
    const answer = await exchange(chain(client({ toDays: minutes })))
    expect(answer.status).toBe(200)
    expect(answer.body.expires_in).toBeLessThanOrEqual(300)
  })
})

interface Attack {
  readonly name: string
  readonly chain: () => { certificate: string; key: string }
  readonly reason: RegExp
  /** OpenSSL's client would refuse to send it. */
  readonly weak?: true
}

const rsa = (bits: number) => ["-algorithm", "RSA", "-pkeyopt", `rsa_keygen_bits:${bits}`]
const authority = (changes: Partial<CertificateOptions> = {}): Issued =>
  openssl.issue({ subject: "/CN=Below", issuer: root, extensions: caExtensions, ...changes })

const attacks: readonly Attack[] = [
  {
    name: "expired",
    chain: () => chain(client({ fromDays: -3, toDays: -1 })),
    reason: /certificate has expired/,
  },
  {
    name: "not yet valid",
    chain: () => chain(client({ fromDays: 1 })),
    reason: /certificate is not valid yet/,
  },
  {
    name: "self-signed",
    chain: () => chain(openssl.issue({ subject: "/O=Acme/CN=api", extensions: clientExtensions })),
    reason: /does not lead to a trust anchor/,
  },
  {
    name: "for servers only",
    chain: () => chain(client({ extensions: serverExtensions("DNS:a") })),
    reason: /not for TLS clients/,
  },
  {
    name: "without an extended key usage",
    chain: () => chain(client({ extensions: ["basicConstraints=critical,CA:FALSE"] })),
    reason: /not for TLS clients/,
  },
  {
    name: "issued by one that is no authority",
    chain: () => {
      const plain = authority({
        extensions: ["basicConstraints=critical,CA:FALSE", "extendedKeyUsage=clientAuth"],
      })
      return chain(client({ issuer: plain }), plain)
    },
    reason: /not a certificate authority/,
  },
  {
    name: "a longer chain than an authority allows",
    chain: () => {
      const last = authority({
        extensions: ["basicConstraints=critical,CA:TRUE,pathlen:0", ...caExtensions.slice(1)],
      })
      const beyond = authority({ subject: "/CN=Beyond", issuer: last })
      return chain(client({ issuer: beyond }), beyond, last)
    },
    reason: /longer than one of its authorities allows|chain is not valid/,
  },
  {
    name: "an expired authority in between",
    chain: () => {
      const old = authority({ fromDays: -3, toDays: -1 })
      return chain(client({ issuer: old }), old)
    },
    reason: /issuer in the chain has expired/,
  },
  {
    name: "another anchor of the same name",
    chain: () => {
      const twin = openssl.issue({ subject: "/O=Acme/CN=Acme Root", extensions: caExtensions })
      return chain(client({ issuer: twin }), twin)
    },
    reason: /does not lead to a trust anchor/,
  },
  {
    name: "another intermediate of the same name",
    chain: () => {
      const twin = openssl.issue({ subject: "/O=Acme/CN=Acme Issuing", extensions: caExtensions })
      return chain(client({ issuer: twin }), twin)
    },
    reason: /does not lead to a trust anchor/,
  },
  {
    name: "the anchor of another provider",
    chain: () => chain(client({ issuer: otherRoot }), otherRoot),
    reason: /does not lead to a trust anchor/,
  },
  {
    name: "signed with SHA-1",
    chain: () => chain(client({ digest: "sha1" })),
    reason: /SHA-1/,
    weak: true,
  },
  {
    name: "an authority signed with SHA-1",
    chain: () => {
      const weak = authority({ digest: "sha1" })
      return chain(client({ issuer: weak }), weak)
    },
    reason: /SHA-1/,
    weak: true,
  },
  {
    name: "an authority with an RSA key of 1024 bits",
    chain: () => {
      const weak = authority({ newKey: rsa(1024) })
      return chain(client({ issuer: weak }), weak)
    },
    reason: /2048 bits/,
    weak: true,
  },
  {
    name: "an RSA key of 512 bits",
    chain: () => chain(client({ newKey: rsa(512) })),
    reason: /2048 bits/,
    weak: true,
  },
  {
    name: "an RSA key of 1024 bits",
    chain: () => chain(client({ newKey: rsa(1024) })),
    reason: /2048 bits/,
    weak: true,
  },
  {
    name: "a critical extension that nobody knows",
    chain: () => chain(client({ extensions: [...clientExtensions, "1.2.3.4.5=critical,ASN1:UTF8String:x"] })),
    reason: /chain is not valid/,
  },
  {
    name: "the anchor itself",
    chain: () => chain(openssl.issue({ subject: "/CN=Usable", extensions: caExtensions, keyOf: root })),
    reason: /not for TLS clients/,
  },
]

/** What `umpire identity test` asks; it has no private key. */
async function rehearse(certificates: string): Promise<unknown> {
  const path = `/v1/organizations/${server.organizationId}/workload_identity/providers/${providerId}/test`
  const { status, body } = await server.send("POST", path, { certificate_chain: certificates })
  expect(status).toBe(200)
  return body.data as unknown
}

describe("a certificate that does not deserve it is invalid_grant, and on record", () => {
  test.each(attacks)("$name", async ({ chain: presented, reason, weak }) => {
    const before = await server.audit(refusedAction)
    const answer = await exchange(presented(), weak ? { weak } : {})
    expect(answer).toMatchObject({
      status: 400,
      body: { error: "invalid_grant", error_description: expect.stringMatching(reason) },
    })
    const [entry, ...rest] = await server.audit(refusedAction)
    expect(rest).toHaveLength(before.length)
    expect(entry).toMatchObject({ actorId: providerId, after: { error: "invalid_grant" } })
  })

  test.each(attacks)("and by a dry run: $name", async ({ chain: presented }) => {
    expect(await rehearse(presented().certificate)).toMatchObject({
      accepted: false,
      steps: [{ outcome: "passed" }, { step: "assertion", outcome: "refused" }, {}, {}, {}],
    })
  })

  test("no certificate at all", async () => {
    expect(await exchange(null)).toMatchObject({
      status: 400,
      body: { error: "invalid_grant", error_description: expect.stringMatching(/no client certificate/) },
    })
  })

  test("an intermediate is never an anchor", async () => {
    const unrelated = openssl.issue({ subject: "/CN=Unrelated", extensions: caExtensions })
    const id = await provide([unrelated], [intermediate])
    expect(await exchange(chain(client(), intermediate), { name: nameOf(id) })).toMatchObject({
      body: { error: "invalid_grant", error_description: expect.stringMatching(/trust anchor/) },
    })
  })

  test("a certificate of one provider is nothing to another, and changes with the provider", async () => {
    const mine = chain(client())
    expect(await exchange(mine, { name: nameOf(otherId) })).toMatchObject({
      body: { error: "invalid_grant" },
    })
    const path = `/v1/organizations/${server.organizationId}/workload_identity/providers/${otherId}`
    const config = { type: "x509", trust_anchors: [otherRoot.certificate, root.certificate] }
    await server.send("PATCH", path, { config })
    const direct = chain(client({ issuer: root }))
    expect(await exchange(direct, { name: nameOf(otherId) })).toMatchObject({ status: 200 })
    await server.send("PATCH", path, { config: { type: "x509", trust_anchors: [otherRoot.certificate] } })
    expect(await exchange(direct, { name: nameOf(otherId) })).toMatchObject({
      body: { error: "invalid_grant" },
    })
  })
})

describe("the mTLS port", () => {
  test("tells invalid_target for a name that no active provider has, and on record where one is inactive", async () => {
    const unknown = `wi-${"0".repeat(26)}.mtls.example`
    expect(await exchange(chain(client()), { name: unknown })).toMatchObject({
      body: { error: "invalid_target" },
    })
    const id = await provide([root], [], { active: false })
    const direct = chain(client({ issuer: root }))
    expect(await exchange(direct, { name: nameOf(id) })).toMatchObject({ body: { error: "invalid_target" } })
    expect((await server.audit(refusedAction))[0]).toMatchObject({ resourceId: id })
  })

  test("does not take a token, nor the id of another provider than the name's", async () => {
    expect(await exchange(chain(client()), { parameters: { subject_token: "x" } })).toMatchObject({
      body: { error: "invalid_request" },
    })
    expect(await exchange(chain(client()), { parameters: { identity_provider_id: otherId } })).toMatchObject({
      body: { error: "invalid_target" },
    })
    expect(
      await exchange(chain(client()), { parameters: { identity_provider_id: providerId } }),
    ).toMatchObject({
      status: 200,
    })
  })

  test("without a name there is no provider while several are active", async () => {
    expect(await exchange(chain(client()), { name: null })).toMatchObject({
      body: { error: "invalid_target" },
    })
  })

  test("a certificate provider takes no tokens on the ordinary port", async () => {
    expect(await server.exchange(providerId, "x.y.z")).toMatchObject({ body: { error: "invalid_target" } })
  })
})

test("without a name the only active provider is meant", async () => {
  const path = `/v1/organizations/${server.organizationId}/workload_identity/providers`
  for (const { id } of (await server.send("GET", path)).body.data as { id: string }[])
    if (id !== providerId) await server.send("PATCH", `${path}/${id}`, { active: false })
  await expect
    .poll(async () => (await exchange(chain(client()), { name: null })).status, {
      interval: 500,
    })
    .toBe(200)
})
