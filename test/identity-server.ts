/** Workload identity in this process: the HTTP API on an empty database, the mTLS port, and an organization with its key. */
import { openOrganizations } from "../src/store/organization-snapshot.ts"
import { createContentCipher } from "../src/store/content/cipher.ts"
import { request } from "node:https"
import { noProxies } from "../src/base/addresses.ts"
import { type Clock, systemClock } from "../src/base/clock.ts"
import { Metrics } from "../src/base/telemetry.ts"
import { createIds } from "../src/base/ids.ts"
import { silentLog } from "../src/base/log.ts"
import type { Handlers } from "../src/contract/endpoint.ts"
import { tokenExchangeGrant, tokenTypes } from "../src/contract/identity.ts"
import type { Table } from "../src/contract/table.ts"
import type { ControlDeps } from "../src/control/audited-change.ts"
import { firstStart } from "../src/control/first-start.ts"
import { createIdempotencyStore } from "../src/control/idempotency.ts"
import { type Identity, openIdentity } from "../src/control/identity/identity.ts"
import { openLastUsed, openPrincipals } from "../src/control/principals.ts"
import { createHttp } from "../src/server/http.ts"
import { openMtls } from "../src/server/mtls.ts"
import { createRequestLimiter } from "../src/server/access.ts"
import { type AuditEntry, pageAudit } from "../src/store/audit.ts"
import type { Database } from "../src/store/sql.ts"
import type { Issued } from "./openssl.ts"
import { bootstrapKey } from "./server.ts"
import { column, row } from "../src/store/rows.ts"

const noLimit = { requestsPerMinute: 1_000_000, burst: 1_000_000 }
const auditPage = 200

interface IdentityServerOptions {
  readonly clock?: Clock
  /** Trusted when issuers are asked. */
  readonly ca?: Issued
  readonly allowPrivate?: boolean
  readonly fetchTimeoutMs?: number
  /** The server certificate of the mTLS port. */
  readonly mtls?: Issued
}

export interface Answer {
  readonly status: number
  // Tests look into bodies of every shape; what is not there fails their expectations.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
  readonly headers: Headers
}

export interface IdentityServer {
  readonly url: string
  readonly mtlsPort: number
  readonly organizationId: string
  readonly identity: Identity
  /** JSON with the bearer value; the organization's key unless told. */
  send(method: string, path: string, body?: unknown, given?: SendOptions): Promise<Answer>
  /** Makes a provider and answers its id. */
  provide(fields: Record<string, unknown>): Promise<string>
  /** A form, as OAuth clients send it. */
  exchange(providerId: string, token: string, more?: Record<string, string>): Promise<Answer>
  /** Newest first. */
  audit(action?: string): Promise<AuditEntry[]>
  close(): Promise<void>
}

interface SendOptions {
  readonly bearer?: string | null
  readonly headers?: Record<string, string>
}

let providers = 0

export async function startIdentityServer(
  database: Database,
  options: IdentityServerOptions = {},
): Promise<IdentityServer> {
  const clock = options.clock ?? systemClock
  const ids = createIds(clock)
  const log = silentLog
  await firstStart(database, { key: bootstrapKey }, { clock, ids })
  const [organization] = await row({ id: column.text }).all(
    database,
  )`SELECT id FROM organizations ORDER BY id LIMIT 1`
  const organizationId = organization?.id ?? ""
  const lastUsed = openLastUsed(database, log)
  const control: ControlDeps = { database, clock, ids, invalidate: (change) => identity.invalidate(change) }
  const identity = await openIdentity({
    ...control,
    log,
    issuer: "https://umpire.test",
    lifetimeMinutes: 15,
    allowPrivate: options.allowPrivate ?? true,
    ca: options.ca?.certificate,
    ...(options.fetchTimeoutMs === undefined ? {} : { fetchTimeoutMs: options.fetchTimeoutMs }),
  })
  const organizations = await openOrganizations(database, clock, 0)
  const principals = await openPrincipals({
    organizations,
    database,
    clock,
    lastUsed,
    workload: async (token) => await identity.authenticate(token),
  })
  const http = createHttp({
    // Nothing else is called in these tests.
    handlers: identity.handlers as unknown as Handlers<Table>,
    metrics: new Metrics(),
    gate: principals,
    idempotency: createIdempotencyStore({ ...control, cipher: createContentCipher([]) }),
    limiter: createRequestLimiter(noLimit),
    clock,
    ids,
    log,
    trustedProxies: noProxies,
    requestTimeoutMs: 60_000,
  })
  const url = await http.listen("127.0.0.1", 0)
  const mtls = options.mtls
    ? await openMtls({
        certificate: options.mtls.certificate,
        privateKey: options.mtls.key,
        trust: async (id) => await identity.trust(id),
        exchange: async (body, facts, presented) =>
          await identity.exchangeCertificate(body, facts, presented),
        ids,
        log,
      })
    : null
  const mtlsPort = (await mtls?.listen("127.0.0.1", 0)) ?? 0
  const send: IdentityServer["send"] = async (
    method,
    path,
    body,
    { bearer = bootstrapKey, headers = {} } = {},
  ) =>
    await answerOf(
      await fetch(url + path, {
        method,
        headers: {
          ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      }),
    )
  return {
    url,
    mtlsPort,
    organizationId,
    identity,
    send,
    async provide(fields) {
      const path = `/v1/organizations/${organizationId}/workload_identity/providers`
      const answer = await send("POST", path, { name: `provider ${++providers}`, ...fields })
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
      return answer.body.data.id as string
    },
    exchange: async (providerId, token, more = {}) =>
      await answerOf(
        await fetch(`${url}/v1/oauth/token`, {
          method: "POST",
          body: new URLSearchParams({
            grant_type: tokenExchangeGrant,
            subject_token: token,
            subject_token_type: tokenTypes.jwt,
            identity_provider_id: providerId,
            ...more,
          }),
        }),
      ),
    async audit(action) {
      const { items } = await pageAudit(database, organizationId, { action }, { limit: auditPage })
      return items
    },
    async close() {
      await mtls?.close()
      await http.close(1000)
      await principals.close()
      await identity.close()
      await lastUsed.close()
    },
  }
}

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text()
  return {
    status: response.status,
    body: text === "" ? null : (JSON.parse(text) as unknown),
    headers: response.headers,
  }
}

/** What a rule set needs at least. */
export const everyone = (...permissions: string[]) => [{ condition: "true", permissions }]

interface CertificateCall {
  readonly port: number
  /** Trusted for the port's own certificate. */
  readonly ca: Issued
  /** SNI; null sends none. */
  readonly name: string | null
  readonly client?: { readonly certificate: string; readonly key: string }
  readonly parameters?: Record<string, string>
  /** Lets this client use keys and digests that OpenSSL would refuse on its own side. */
  readonly weak?: boolean
}

/** An exchange over mTLS, as a workload makes it. */
export async function exchangeCertificate(call: CertificateCall): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const message = request(
    {
      host: "127.0.0.1",
      port: call.port,
      method: "POST",
      path: "/v1/oauth/token",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      ca: call.ca.certificate,
      // The certificate's name is checked against this host, whether SNI is sent or not.
      servername: call.name ?? "",
      checkServerIdentity: () => undefined,
      agent: false,
      ...(call.client ? { cert: call.client.certificate, key: call.client.key } : {}),
      ...(call.weak
        ? { ciphers: "DEFAULT@SECLEVEL=0", maxVersion: "TLSv1.2" as const, sigalgs: weakSignatures }
        : {}),
    },
    (response) => {
      let text = ""
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk))
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          body: JSON.parse(text) as unknown,
          headers: new Headers(),
        }),
      )
    },
  )
  message.on("error", reject)
  message.end(new URLSearchParams({ grant_type: tokenExchangeGrant, ...call.parameters }).toString())
  return await promise
}

const weakSignatures = "RSA+SHA256:RSA+SHA1:ECDSA+SHA256"
