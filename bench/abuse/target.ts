/** Where hostile requests go: every endpoint of the table, at addresses that exist as far as they can be made. */
import { once } from "node:events"
import { type Socket, connect } from "node:net"
import { setTimeout as wait } from "node:timers/promises"
import { gzipSync } from "node:zlib"
import { request } from "undici"
import { z } from "zod"
import { type Permission, permissions } from "../../src/contract/access.ts"
import { type Endpoint, isWrite } from "../../src/contract/endpoint.ts"
import { table } from "../../src/contract/table.ts"
import { startChatServer } from "../../test/chat-servers.ts"
import { operatorOf } from "../../test/operator.ts"
import type { TestServer } from "../../test/server.ts"
import { type HostileBody, attackedQuestion } from "./bodies.ts"

export interface Target {
  readonly url: string
  /** Of one organization: a key for each permission, which has no other, and the session of its owner. */
  readonly keys: Readonly<Record<Permission, string>>
  readonly session: string
  /** Values of parameters of paths. */
  readonly ids: Readonly<Record<string, string>>
  readonly refused: RefusedCallers
  /** The operator's organization, which alone has connected models, and the session of its owner. */
  readonly operators: { readonly org_id: string; readonly session: string }
  close(): Promise<void>
}

interface RefusedCallers {
  /** Of the same organization: a session without its owner's role. */
  readonly member: string
  /** Of another organization: the session of its owner, and for each permission a key that lacks this one only. */
  readonly foreign: string
  readonly lacking: Readonly<Record<Permission, string>>
  /** A key of the other organization whose requests of this minute are used up; it lacks `inference` and what writes, too. */
  readonly spent: string
}

type Named = readonly [string, Endpoint]
const takesBody = ({ body }: Endpoint): boolean => !(body instanceof z.ZodUndefined)
const all: readonly Named[] = Object.entries<Endpoint>(table)
/** Those that take a body, by name. */
export const attacked: readonly Named[] = all.filter(([, endpoint]) => takesBody(endpoint))
/** Those that take none: what is sent to them nevertheless must cost nothing. */
export const bodiless: readonly Named[] = all.filter(([, endpoint]) => !takesBody(endpoint))

const idOf = (found: unknown): string => z.object({ id: z.string() }).parse(found).id

const Joined = z.object({
  user: z.object({ id: z.string() }),
  session: z.object({ token: z.string() }),
})

async function makeBatch(
  url: string,
  bearer: string,
  ask: (path: string, body: unknown, bearer: string) => Promise<unknown>,
): Promise<string> {
  const form = new FormData()
  form.set("purpose", "batch")
  form.set("file", new Blob(["no line\n"]), "lines.jsonl")
  const headers = { authorization: `Bearer ${bearer}` }
  const filed = await fetch(`${url}/v1/files`, { method: "POST", headers, body: form })
  const endpoint = "/v1/decisions"
  const body = { input_file_id: idOf(await filed.json()), endpoint, completion_window: "24h" }
  return idOf(await ask("/v1/batches", body, bearer))
}

const Listed = z.object({ data: z.array(z.object({ id: z.string() })) })

/** Evidence is kept for one decision, which is then reviewed. */
async function makeReviewItem(organization: string, bearer: string): Promise<string> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${bearer}` }
  const ask = async (method: string, path: string, body?: object): Promise<Response> => {
    const sent = body && { body: JSON.stringify(body) }
    const response = await fetch(organization + path, { method, headers, ...sent })
    if (!response.ok) throw new Error(`Cannot prepare the attack: ${path} answered ${response.status}`)
    return response
  }
  await ask("PUT", "/content_settings", { keep: "evidence_and_answers" })
  await ask("PATCH", "/question_sets/abused/review", { sample_rate: 1 })
  await ask("POST", "/question_sets/abused/decide", { input: "You are late." })
  for (;;) {
    const [item] = Listed.parse(await (await ask("GET", "/question_sets/abused/review")).json()).data
    if (item) {
      await ask("PUT", "/content_settings", { keep: "nothing" })
      return item.id
    }
    await wait(reviewPollMs)
  }
}

const reviewPollMs = 200

/** Its server is here; what it says of itself must be calibrated. */
const connected = {
  sku: "connected",
  dialect: "openai",
  model: "large",
  context_tokens_max: 128_000,
  price_m_input_tokens_usd: "0.01",
  price_m_input_cache_read_tokens_usd: "0.01",
  price_m_output_tokens_usd: "0.01",
} as const

/** Makes what paths name; what cannot be made is 404, before its body is read. */
export async function openTarget(server: TestServer): Promise<Target> {
  const { url } = server
  const owner = "attacker@example.com"
  const operator = await operatorOf(server)
  const first = (await operator.listAllOrganizations()).at(-1)
  const made = await operator.openOrganization({
    body: { name: "Attacker", owner, billing_account: first?.billing_account_id },
  })
  const { id: org_id } = made
  // What attacks do to an account must not stop the organization that is watched.
  const account = await operator.openOrganization({ body: { name: "Billed", owner } })
  const elsewhere = await operator.openOrganization({
    body: { name: "Elsewhere", owner: "elsewhere@example.com" },
  })
  const ask = async (path: string, body: unknown, bearer?: string): Promise<unknown> => {
    const authorization = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
    const headers = { "content-type": "application/json", ...authorization }
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) })
    const text = await response.text()
    if (!response.ok)
      throw new Error(`Cannot prepare the attack: ${path} answered ${response.status} ${text}`)
    const answer = JSON.parse(text) as { data?: unknown }
    // The Platform API wraps what it answers.
    return answer.data ?? answer
  }
  const sessionOf = async (link: string | null): Promise<string> =>
    z.object({ token: z.string() }).parse(await ask("/v1/session", { link })).token
  const session = await sessionOf(made.link)
  const at = `/v1/organizations/${org_id}`
  const make = async (path: string, body: unknown): Promise<string> =>
    idOf(await ask(at + path, body, session))
  const keyOf = async (org: string, held: readonly Permission[], limits: object = {}): Promise<string> => {
    const body = { name: held.join(), permissions: [...held], ...limits }
    return (await operator.createApiKey({ params: { org_id: org }, body })).secret ?? ""
  }
  const keyForEach = async (
    org: string,
    heldFor: (permission: Permission) => readonly Permission[],
  ): Promise<Record<Permission, string>> => {
    const made = permissions.map(async (one) => [one, await keyOf(org, heldFor(one))] as const)
    // True: there is one for each permission.
    return Object.fromEntries(await Promise.all(made)) as Record<Permission, string>
  }
  const join = async (email: string): Promise<z.infer<typeof Joined>> => {
    const invited = await ask(`${at}/invites`, { email, role: "member" }, session)
    const { accept_token: token } = z.object({ accept_token: z.string() }).parse(invited)
    const body = { token, name: "Member", password: "a long enough password" }
    return Joined.parse(await ask("/v1/invites/accept", body))
  }
  const spent = await keyOf(elsewhere.id, ["api-read"], {
    rate_limit: { requests_per_minute: 1, burst: 1 },
  })
  await fetch(`${url}/v1/organizations`, { headers: { authorization: `Bearer ${spent}` } })
  const refused = {
    member: (await join("member@example.com")).session.token,
    foreign: await sessionOf(elsewhere.link),
    lacking: await keyForEach(elsewhere.id, (lacks) => permissions.filter((one) => one !== lacks)),
    spent,
  }
  const keys = await keyForEach(org_id, (one) => [one])
  const question = { type: "predicate", name: attackedQuestion, instructions: "Is it rude?" }
  const set_id = await make("/question_sets", {
    name: "abused",
    model: "umpire-decide",
    questions: [question],
  })
  await ask(
    `${at}/question_sets/abused/examples`,
    { rows: [{ input: "a", labels: { [attackedQuestion]: true } }] },
    session,
  )
  const examples = await fetch(`${url}${at}/question_sets/abused/examples`, {
    headers: { authorization: `Bearer ${session}` },
  })
  const [example] = Listed.parse(await examples.json()).data
  const { link: operatorsLink } = await operator.createSignInLink({ body: {} })
  const operators = { org_id: first?.id ?? "", session: await sessionOf(operatorsLink) }
  const chats = await startChatServer("plain")
  const ids = {
    org_id,
    set_id,
    example_id: example?.id ?? "",
    item_id: await makeReviewItem(`${url}${at}`, session),
    label: "abused",
    // Not the one whose session attacks: its role may change.
    user_id: (await join("changed@example.com")).user.id,
    batch_id: await makeBatch(url, keys.inference, ask),
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
    connected_model_id: idOf(
      await ask(
        `/v1/organizations/${operators.org_id}/connected_models`,
        { ...connected, url: chats.url, key: chats.key },
        operators.session,
      ),
    ),
    model_id: await make("/models", { name: "abused-model", alias: "umpire-decide" }),
    conversation_id: idOf(await ask("/v1/conversations", {}, keys.inference)),
    completion_id: idOf(
      await ask(
        "/v1/chat/completions",
        { model: "umpire-chat", messages: [{ role: "user", content: "Hi" }], max_tokens: 1, store: true },
        keys.inference,
      ),
    ),
  }
  return { url, keys, session, ids, refused, operators, close: async () => await chats.close() }
}

/** By a caller that may do it, where it can be done. */
export function allowed(endpoint: Endpoint, target: Target): Sending {
  if (!endpoint.path.includes("{connected_model_id}"))
    return { target, endpoint, bearer: callerOf(endpoint, target) }
  const { session, org_id } = target.operators
  return { target: { ...target, ids: { ...target.ids, org_id } }, endpoint, bearer: session }
}

/** By whose key or session an endpoint is attacked: one that may; none where anyone may. */
function callerOf(endpoint: Endpoint, { keys, session }: Target): string {
  const { access, path } = endpoint
  const { principals, permission, owner } = access
  if (principals.length === 0) return ""
  const byKey = principals.includes("key") && owner !== "everyone" && !path.includes("{billing_account_id}")
  // To sign out would end the attack.
  if (isWrite(endpoint) && !takesBody(endpoint) && !path.includes("{")) return keys.inference
  return permission !== undefined && byKey ? keys[permission] : session
}

/** A caller that an endpoint refuses, whatever it sends. */
export interface Refusal {
  /** What it lacks first; what is asked for later it lacks too, where it can. */
  readonly lacks: "credentials" | "allowance" | "permission" | "organization" | "role" | "resource"
  readonly status: number
  readonly sending: Sending
}

/** One for each thing that a caller needs before its body is looked at, in the order in which the refusals win. */
export function refusalsOf(endpoint: Endpoint, target: Target): Refusal[] {
  const { access, path } = endpoint
  const { refused, ids } = target
  // An address that does not exist, where a part before it is refused.
  const nowhere = {
    ...target,
    ids: { org_id: ids["org_id"] ?? "", billing_account_id: ids["billing_account_id"] ?? "" },
  }
  const by = (bearer: string, given = nowhere): Sending => ({ target: given, endpoint, bearer })
  const isOpen = access.principals.length === 0
  const isWithin = path.includes("{org_id}") || path.includes("{billing_account_id}")
  const found: Refusal[] = []
  if (access.ownBearer) return found
  found.push({ lacks: "credentials", status: 401, sending: by("unknown") })
  found.push({ lacks: "allowance", status: 429, sending: by(refused.spent) })
  if (isOpen) return found
  if (access.permission)
    found.push({ lacks: "permission", status: 403, sending: by(refused.lacking[access.permission]) })
  if (isWithin) found.push({ lacks: "organization", status: 404, sending: by(refused.foreign) })
  if (access.permission === "inference" && !isWithin)
    found.push({
      lacks: "organization",
      status: 403,
      sending: { ...by(refused.foreign), headers: { "x-umpire-organization": ids["org_id"] ?? "" } },
    })
  if (access.owner) found.push({ lacks: "role", status: 403, sending: by(refused.member) })
  if (takesBody(endpoint))
    for (const name of namedIn(path))
      found.push({ lacks: "resource", status: 404, sending: allowed(endpoint, without(target, name)) })
  return found
}

/** What must be there already: a label is made by being put. */
const namedIn = (path: string): string[] =>
  [...path.matchAll(/\{(\w+)\}/g)]
    .map(([, name = ""]) => name)
    .filter((name) => !["org_id", "billing_account_id", "label"].includes(name))

/** All is there but this one, which has the form of one that could be. */
function without(target: Target, name: string): Target {
  const id = target.ids[name] ?? ""
  const other = id.slice(0, -1) + (id.endsWith("0") ? "1" : "0")
  return { ...target, ids: { ...target.ids, [name]: other } }
}

/** The status that it gets by this way of sending. */
export async function statusOf(
  { lacks, status, sending }: Refusal,
  by: (sending: Sending) => Promise<number>,
): Promise<number> {
  const answered = await by(sending)
  // It may have got back the one request that it has a minute; now that is used up, too.
  return lacks === "allowance" && answered !== status ? await by(sending) : answered
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
  readonly headers?: Readonly<Record<string, string>>
}

const bearerHeader = (bearer: string): Record<string, string> =>
  bearer === "" ? {} : { authorization: `Bearer ${bearer}` }

/** Encoded once, however often it is sent: the attacker's own work is done on the processors of the gateway. */
const encoded = new WeakMap<HostileBody, { plain: Buffer; gzip?: Buffer }>()

function bytesOf(body: HostileBody, coding = "identity"): Buffer {
  const made = encoded.get(body) ?? { plain: Buffer.from(body.text) }
  encoded.set(body, made)
  return coding === "gzip" ? (made.gzip ??= gzipSync(made.plain)) : made.plain
}

/** The status of the answer. */
export async function send(
  { target, endpoint, bearer, headers = {} }: Sending,
  body: HostileBody,
): Promise<number> {
  const response = await request(target.url + addressOf(endpoint, target.ids), {
    method: endpoint.method,
    headers: { ...bearerHeader(bearer), "content-type": body.contentType, ...headers },
    ...(endpoint.method === "GET" ? {} : { body: bytesOf(body, headers["content-encoding"]) }),
    signal: AbortSignal.timeout(answerMsMax),
  })
  await response.body.dump({ limit: Infinity })
  return response.statusCode
}

export const manners = ["compressed", "slow", "aborted", "unread", "pipelined"] as const
export type Manner = (typeof manners)[number]

const heldMs = 500
const pipelinedRequests = 100

const connectTo = ({ url }: Target): Socket => {
  const { hostname, port } = new URL(url)
  return connect(Number(port), hostname).on("error", () => undefined)
}

function headOf({ target, endpoint, bearer, headers }: Sending, contentType: string, length: number): string {
  const { hostname } = new URL(target.url)
  const given = { host: hostname, ...bearerHeader(bearer), ...headers, "content-type": contentType }
  return [
    `${endpoint.method} ${addressOf(endpoint, target.ids)} HTTP/1.1`,
    ...Object.entries(given).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${length}\r\n\r\n`,
  ].join("\r\n")
}

/** The status of what is answered to a head alone: the body that it announces never comes. */
export async function sendHead(sending: Sending): Promise<number> {
  const { consumes = ["application/json"], bodyBytesMax } = sending.endpoint
  const length = takesBody(sending.endpoint) ? bodyBytesMax : 0
  const socket = connectTo(sending.target)
  socket.write(headOf(sending, consumes[0] ?? "", length))
  const [part] = (await once(socket, "data")) as [Buffer]
  socket.destroy()
  return Number(/^HTTP\/1\.1 (\d+)/.exec(part.toString("latin1"))?.[1])
}

/** The same body by a client that behaves badly. Returns the status where there is one. */
export async function misbehave(sending: Sending, body: HostileBody, manner: Manner): Promise<number | null> {
  if (manner === "compressed")
    return await send({ ...sending, headers: { "content-encoding": "gzip" } }, body)
  const head = (length: number): string => headOf(sending, body.contentType, length)
  const socket = connectTo(sending.target)
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
