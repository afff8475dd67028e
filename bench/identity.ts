/**
 * Measures token exchanges: how many a second and how long each takes, for OIDC tokens and for client certificates, and
 * how soon expressions that were made to be slow are refused, and what that costs another organization meanwhile.
 * The server is a process of its own with the embedded database; the clients are in this one.
 *
 * node bench/identity.ts [--seconds=5]
 */
import { fork } from "node:child_process"
import { generateKeyPairSync, sign, verify } from "node:crypto"
import { parseArgs } from "node:util"
import { Agent, request } from "undici"
import { tokenExchangeGrant, tokenTypes } from "../src/contract/identity.ts"
import { createIds } from "../src/base/ids.ts"
import { openTestDatabase } from "../test/database.ts"
import { exchangeCertificate, startIdentityServer } from "../test/identity-server.ts"
import { makeSigner } from "../test/issuer.ts"
import { seeder } from "../test/platform.ts"
import { bootstrapKey } from "../test/server.ts"
import { OpenSsl, caExtensions, clientExtensions, serverExtensions } from "../test/openssl.ts"
import { SignJWT } from "jose"

const concurrencies = [1, 8, 32]
const warmUpMs = 1000
const issuer = "https://issuer.example"

const policy = {
  attribute_condition: "assertion.repository_owner == 'acme'",
  attribute_transformations: { repository: "assertion.repository", branch: "assertion.ref.split('/')[2]" },
  authorization_rules: [
    { condition: "attribute.branch == 'release'", permissions: ["inference", "api-admin"] },
    { condition: "attribute.repository.startsWith('acme/')", permissions: ["inference"] },
    { condition: "true", permissions: [] },
  ],
}
const certificatePolicy = {
  authorization_rules: [
    { condition: "assertion.spiffe_id.startsWith('spiffe://acme.example/')", permissions: ["inference"] },
    { condition: "true", permissions: [] },
  ],
}

const many = `[${Array.from({ length: 500 }, () => 1).join(",")}]`
/** 500 cubed steps. */
const bomb = `${many}.all(a, ${many}.all(b, ${many}.all(c, a + b + c > 0)))`
/** Nearly 16 KiB that are right, and that are not: the parser has to read all of it before it is known. */
const longest = `assertion.sub in [${Array.from({ length: 550 }, (_, index) => `'repo:acme/site-${String(index).padStart(10, "0")}'`).join(",")}]`
const endless = `${"assertion".padEnd(10_000)}${".a".repeat(2_990)} == 1`
const attacksWanted = 20

/** What the serving process tells the measuring one. */
interface Scene {
  readonly organizationId: string
  readonly bombId: string
  readonly longestId: string
  readonly bystanderId: string
  readonly url: string
  readonly mtlsPort: number
  readonly oidcId: string
  readonly x509Id: string
  readonly token: string
  readonly ca: string
  readonly client: { readonly certificate: string; readonly key: string }
}

async function serve(): Promise<void> {
  const openssl = new OpenSsl()
  const root = openssl.issue({ subject: "/CN=Root", extensions: caExtensions })
  const mtls = openssl.issue({
    subject: "/CN=m",
    issuer: root,
    extensions: serverExtensions("DNS:*.m.example"),
  })
  const extensions = [...clientExtensions, "subjectAltName=URI:spiffe://acme.example/worker"]
  const leaf = openssl.issue({ subject: "/CN=worker", issuer: root, extensions })
  const signer = await makeSigner("key")
  const database = await openTestDatabase()
  const server = await startIdentityServer(database, { mtls })
  const now = Math.floor(Date.now() / 1000)
  const claims = {
    sub: "repo:acme/app",
    repository: "acme/app",
    repository_owner: "acme",
    ref: "refs/heads/main",
  }
  const config = {
    type: "oidc",
    issuer_uri: issuer,
    allowed_audiences: ["umpire"],
    jwks: { keys: [signer.jwk] },
  }
  const ruled = async (condition: string): Promise<string> =>
    await server.provide({
      config,
      authorization_rules: [
        { condition, permissions: ["inference"] },
        { condition: "true", permissions: [] },
      ],
    })
  const seed = seeder({ database, ids: createIds() })
  const bystander = await seed.organization("Bystander", await seed.billingAccount())
  const { value: bearer } = await seed.key(bystander, ["inference", "api-admin"])
  const made = await server.send(
    "POST",
    `/v1/organizations/${bystander}/workload_identity/providers`,
    { name: "calm", config, ...policy },
    { bearer },
  )
  const scene: Scene = {
    url: server.url,
    mtlsPort: server.mtlsPort,
    organizationId: server.organizationId,
    bombId: await ruled(bomb),
    longestId: await ruled(longest),
    bystanderId: made.body.data.id as string,
    oidcId: await server.provide({ config, ...policy }),
    x509Id: await server.provide({
      config: { type: "x509", trust_anchors: [root.certificate] },
      ...certificatePolicy,
    }),
    token: await new SignJWT({ ...claims, iss: issuer, aud: "umpire", iat: now, exp: now + 3600 })
      .setProtectedHeader({ alg: signer.alg, kid: signer.kid })
      .sign(signer.privateKey),
    ca: root.certificate,
    client: { certificate: leaf.certificate, key: leaf.key },
  }
  openssl.close()
  process.send?.(scene)
}

async function measure(scene: Scene, seconds: number): Promise<void> {
  const agent = new Agent({ connections: Math.max(...concurrencies) })
  const headers = { "content-type": "application/x-www-form-urlencoded" }
  const exchangeAt = async (providerId: string, wanted: RegExp): Promise<void> => {
    const answer = await request(`${scene.url}/v1/oauth/token`, {
      method: "POST",
      headers,
      body: new URLSearchParams({
        grant_type: tokenExchangeGrant,
        subject_token: scene.token,
        subject_token_type: tokenTypes.jwt,
        identity_provider_id: providerId,
      }).toString(),
      dispatcher: agent,
    })
    const text = await answer.body.text()
    if (!wanted.test(text)) throw new Error(text)
  }
  const exchangeToken = async (): Promise<void> => await exchangeAt(scene.oidcId, /access_token/)
  const unused = { key: "", keyFile: "", certificateFile: "" }
  const exchangeChain = async (): Promise<void> => {
    const answer = await exchangeCertificate({
      port: scene.mtlsPort,
      ca: { ...unused, certificate: scene.ca },
      name: `${scene.x509Id.replace("_", "-")}.m.example`,
      client: scene.client,
    })
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  }
  const rows: (readonly [string, () => Promise<unknown>])[] = [
    ["OIDC token, keep-alive", exchangeToken],
    ["client certificate, full TLS handshake each", exchangeChain],
  ]
  for (const [name, exchange] of rows)
    for (const concurrency of concurrencies) {
      await run(exchange, concurrency, warmUpMs)
      report(`${name}, ${concurrency} at once`, await run(exchange, concurrency, seconds * 1000))
    }
  await measureAttacks(scene, exchangeAt)
  await agent.close()
  reportLimit()
}

async function measureAttacks(
  scene: Scene,
  exchangeAt: (providerId: string, wanted: RegExp) => Promise<void>,
): Promise<void> {
  const calm = async (): Promise<void> => await exchangeAt(scene.bystanderId, /access_token/)
  const attack = async (): Promise<void> => await exchangeAt(scene.bombId, /takes longer than/)
  const save = async (): Promise<void> => {
    const answer = await request(
      `${scene.url}/v1/organizations/${scene.organizationId}/workload_identity/providers`,
      {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${bootstrapKey}` },
        body: JSON.stringify({
          name: "endless",
          config: { type: "oidc", issuer_uri: issuer, allowed_audiences: ["umpire"] },
          authorization_rules: [
            { condition: endless, permissions: [] },
            { condition: "true", permissions: [] },
          ],
        }),
      },
    )
    const text = await answer.body.text()
    if (answer.statusCode !== 422) throw new Error(text)
  }
  const attacks: (readonly [string, () => Promise<void>])[] = [
    ["comprehension bomb, refused", attack],
    ["expression of 16 KiB that cannot be right, refused when saved", save],
    ["expression of 16 KiB that is right, exchanged", () => exchangeAt(scene.longestId, /"error"/)],
  ]
  report("another organization, nothing else going on", await run(calm, 1, warmUpMs))
  for (const [name, once] of attacks) {
    const state = { over: false }
    const meanwhile = run(calm, 1, Infinity, () => state.over)
    report(name, await repeat(once, attacksWanted))
    state.over = true
    report("  another organization meanwhile", await meanwhile)
  }
}

async function repeat(work: () => Promise<void>, times: number): ReturnType<typeof run> {
  let left = times
  return await run(
    async () => {
      left--
      await work()
    },
    1,
    Infinity,
    () => left === 0,
  )
}

/** Latencies in milliseconds, sorted, and the time that all of them took. */
async function run(
  work: () => Promise<unknown>,
  concurrency: number,
  durationMs: number,
  isOver: () => boolean = () => false,
): Promise<{ latencies: number[]; elapsedMs: number }> {
  const latencies: number[] = []
  const startMs = performance.now()
  const client = async (): Promise<void> => {
    for (;;) {
      const beginMs = performance.now()
      if (beginMs - startMs >= durationMs || isOver()) return
      await work()
      latencies.push(performance.now() - beginMs)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, client))
  return { latencies: latencies.toSorted((a, b) => a - b), elapsedMs: performance.now() - startMs }
}

function report(name: string, { latencies, elapsedMs }: Awaited<ReturnType<typeof run>>): void {
  const at = (quantile: number): string =>
    (latencies[Math.min(latencies.length - 1, Math.floor(quantile * latencies.length))] ?? 0).toFixed(1)
  const perSecond = (latencies.length / elapsedMs) * 1000
  console.log(
    `${name.padEnd(62)} ${perSecond.toFixed(0).padStart(6)}/s  p50 ${at(0.5)} ms  p99 ${at(0.99)} ms  most ${at(1)} ms`,
  )
}

/** What one core can do at most when it does nothing but the two signatures of an OIDC exchange. */
function reportLimit(): void {
  const ec = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const ed = generateKeyPairSync("ed25519")
  const text = Buffer.alloc(600, "a")
  const signature = sign("sha256", text, ec.privateKey)
  const rounds = 2000
  const startMs = performance.now()
  for (let round = 0; round < rounds; round++) {
    verify("sha256", text, ec.publicKey, signature)
    sign(null, text, ed.privateKey)
  }
  const perSecond = (rounds / (performance.now() - startMs)) * 1000
  console.log(
    `${"limit: verify ES256 and sign EdDSA, one core".padEnd(62)} ${perSecond.toFixed(0).padStart(6)}/s`,
  )
}

if (process.send) await serve()
else {
  const { values } = parseArgs({ options: { seconds: { type: "string", default: "5" } } })
  const server = fork(import.meta.filename)
  const scene = await new Promise<Scene>((resolve, reject) => {
    server.once("message", (message) => resolve(message as Scene))
    server.once("exit", () => reject(new Error("The server did not start")))
  })
  try {
    await measure(scene, Number(values.seconds))
  } finally {
    server.kill()
  }
}
