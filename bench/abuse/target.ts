/** Where hostile requests go: every endpoint of the table, at addresses that exist as far as they can be made. */
import { connect } from "node:net"
import { setTimeout as wait } from "node:timers/promises"
import { gzipSync } from "node:zlib"
import { z } from "zod"
import { type Permission, permissions } from "../../src/contract/access.ts"
import { type Endpoint, isWrite } from "../../src/contract/endpoint.ts"
import { table } from "../../src/contract/table.ts"
import { operatorOf } from "../../test/operator.ts"
import type { TestServer } from "../../test/server.ts"
import type { HostileBody } from "./bodies.ts"

export interface Target {
  readonly url: string
  /** Of one organization: a key for each permission, which has no other, and the session of its owner. */
  readonly keys: Readonly<Record<Permission, string>>
  readonly session: string
  /** Values of parameters of paths. */
  readonly ids: Readonly<Record<string, string>>
}

type Named = readonly [string, Endpoint]
const takesBody = ({ body }: Endpoint): boolean => !(body instanceof z.ZodUndefined)
const all: readonly Named[] = Object.entries<Endpoint>(table)
/** Those that take a body, by name. */
export const attacked: readonly Named[] = all.filter(([, endpoint]) => takesBody(endpoint))
/** Those that take none: what is sent to them nevertheless must cost nothing. */
export const bodiless: readonly Named[] = all.filter(([, endpoint]) => !takesBody(endpoint))

const idOf = (found: unknown): string => z.object({ id: z.string() }).parse(found).id

/** Makes what paths name; what cannot be made is 404, before its body is read. */
export async function openTarget(server: TestServer): Promise<Target> {
  const { url } = server
  const owner = "attacker@example.com"
  const operator = await operatorOf(server)
  const billing_account = (await operator.listAllOrganizations()).at(-1)?.billing_account_id
  const made = await operator.openOrganization({ body: { name: "Attacker", owner, billing_account } })
  const { id: org_id, link } = made
  // What attacks do to an account must not stop the organization that is watched.
  const account = await operator.openOrganization({ body: { name: "Billed", owner } })
  const ask = async (path: string, body: unknown, bearer?: string): Promise<unknown> => {
    const authorization = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
    const headers = { "content-type": "application/json", ...authorization }
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) })
    const text = await response.text()
    if (!response.ok)
      throw new Error(`Cannot prepare the attack: ${path} answered ${response.status} ${text}`)
    // The Platform API wraps what it answers.
    return (JSON.parse(text) as { data?: unknown }).data
  }
  const { token: session } = z.object({ token: z.string() }).parse(await ask("/v1/session", { link }))
  const at = `/v1/organizations/${org_id}`
  const make = async (path: string, body: unknown): Promise<string> =>
    idOf(await ask(at + path, body, session))
  const keyWith = async (permission: Permission): Promise<[Permission, string]> => {
    const made = await ask(`${at}/api_keys`, { name: permission, permissions: [permission] }, session)
    return [permission, z.object({ secret: z.string() }).parse(made).secret]
  }
  const keys = Object.fromEntries(await Promise.all(permissions.map(keyWith))) as Target["keys"]
  const question = { type: "predicate", name: "rude", instructions: "Is it rude?" }
  const set_id = await make("/question_sets", {
    name: "abused",
    model: "umpire-decide",
    questions: [question],
  })
  await ask(
    `${at}/question_sets/abused/examples`,
    { rows: [{ input: "a", labels: { rude: true } }] },
    session,
  )
  const ids = {
    org_id,
    set_id,
    billing_account_id: account.billing_account_id,
    key_id: await make("/api_keys", { name: "abused", permissions: ["api-read"] }),
    provider_id: await make("/workload_identity/providers", {
      name: "abused",
      config: { type: "oidc", issuer_uri: "https://issuer.example", allowed_audiences: ["umpire"] },
      authorization_rules: [{ condition: "true", permissions: ["inference"] }],
    }),
    guardrail_id: await make("/guardrails", { name: "abused", question_set: "abused", model: "umpire-chat" }),
    webhook_id: await make("/webhooks", { url: "https://hooks.example/abused", events: ["alert.firing"] }),
    rule_id: await make("/alert_rules", { name: "abused", kind: "error_rate" }),
    model_id: await make("/models", { name: "abused-model", alias: "umpire-decide" }),
  }
  return { url, keys, session, ids }
}

/** By whose key or session: one that may, and one that lacks the permission; none where anyone may. */
export function callersOf(endpoint: Endpoint, { keys, session }: Target): { may: string; lacks: string } {
  const { access, path } = endpoint
  const { principals, permission, owner } = access
  if (principals.length === 0) return { may: "", lacks: "" }
  const byKey = principals.includes("key") && owner !== "everyone" && !path.includes("{billing_account_id}")
  const lacks = keys[permission === "inference" ? "api-read" : "inference"]
  // To sign out would end the attack.
  if (isWrite(endpoint) && !takesBody(endpoint) && !path.includes("{")) return { may: lacks, lacks }
  return { may: permission !== undefined && byKey ? keys[permission] : session, lacks }
}

/** What would be deleted or ended is another, which does not exist. */
const addressOf = (endpoint: Endpoint, ids: Target["ids"]): string => {
  const spares = isWrite(endpoint) && !takesBody(endpoint)
  return endpoint.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    spares && name !== "org_id" ? "nothing" : (ids[name] ?? "nothing"),
  )
}

const answerMsMax = 120_000

export interface Sending {
  readonly target: Target
  readonly endpoint: Endpoint
  /** Empty for none. */
  readonly bearer: string
}

const bearerHeader = (bearer: string): Record<string, string> =>
  bearer === "" ? {} : { authorization: `Bearer ${bearer}` }

/** The status of the answer. */
export async function send(
  { target, endpoint, bearer }: Sending,
  { contentType, text }: HostileBody,
  headers: Record<string, string> = {},
): Promise<number> {
  const body = headers["content-encoding"] === "gzip" ? gzipSync(text) : text
  const response = await fetch(target.url + addressOf(endpoint, target.ids), {
    method: endpoint.method,
    headers: { ...bearerHeader(bearer), "content-type": contentType, ...headers },
    ...(endpoint.method === "GET" ? {} : { body }),
    redirect: "manual",
    signal: AbortSignal.timeout(answerMsMax),
  })
  await response.arrayBuffer()
  return response.status
}

export const manners = ["compressed", "slow", "aborted", "unread", "pipelined"] as const
export type Manner = (typeof manners)[number]

const heldMs = 500
const pipelinedRequests = 100

/** The same body by a client that behaves badly. Returns the status where there is one. */
export async function misbehave(sending: Sending, body: HostileBody, manner: Manner): Promise<number | null> {
  if (manner === "compressed") return await send(sending, body, { "content-encoding": "gzip" })
  const { target, endpoint, bearer } = sending
  const { hostname, port } = new URL(target.url)
  const headers = { host: hostname, ...bearerHeader(bearer), "content-type": body.contentType }
  const head = (length: number): string =>
    [
      `${endpoint.method} ${addressOf(endpoint, target.ids)} HTTP/1.1`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      `content-length: ${length}\r\n\r\n`,
    ].join("\r\n")
  const socket = connect(Number(port), hostname)
  socket.on("error", () => undefined)
  if (manner === "unread") socket.pause()
  else socket.resume()
  const { text } = body
  const sent = {
    slow: head(text.length) + text.slice(0, 1),
    aborted: head(text.length) + text.slice(0, text.length / 2),
    unread: head(text.length) + text,
    pipelined: `${head(2)}{}`.repeat(pipelinedRequests),
  }[manner]
  socket.write(sent)
  await wait(heldMs)
  socket.destroy()
  return null
}
