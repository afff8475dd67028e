/** Where hostile requests go: every endpoint of the table, at addresses that exist as far as they can be made. */
import { connect } from "node:net"
import { setTimeout as wait } from "node:timers/promises"
import { gzipSync } from "node:zlib"
import { z } from "zod"
import type { Endpoint } from "../../src/contract/endpoint.ts"
import { table } from "../../src/contract/table.ts"
import type { HostileBody } from "./bodies.ts"

export interface Target {
  readonly url: string
  readonly key: string
  /** Values of parameters of paths. */
  readonly ids: Readonly<Record<string, string>>
}

/** Those that take a body, by name. */
export const attacked: readonly (readonly [string, Endpoint])[] = Object.entries<Endpoint>(table).filter(
  ([, { body }]) => !(body instanceof z.ZodUndefined),
)

const idOf = (found: unknown): string => z.object({ id: z.string() }).parse(found).id

/** Makes what paths name; what cannot be made is 404, before its body is read. */
export async function openTarget({ url, key }: Pick<Target, "url" | "key">): Promise<Target> {
  const ask = async (path: string, body?: unknown): Promise<{ data?: unknown }> => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }
    // The Platform API wraps what it answers.
    return (await (await fetch(url + path, { headers, ...init })).json()) as { data?: unknown }
  }
  const [organization] = z.array(z.unknown()).parse((await ask("/v1/organizations")).data)
  const at = `/v1/organizations/${idOf(organization)}`
  const question = { type: "predicate", name: "rude", instructions: "Is it rude?" }
  const set = await ask(`${at}/question_sets`, {
    name: "abused",
    model: "umpire-decide",
    questions: [question],
  })
  const other = await ask(`${at}/api_keys`, { name: "abused", permissions: ["api-read"] })
  const provider = await ask(`${at}/workload_identity/providers`, {
    name: "abused",
    config: { type: "oidc", issuer_uri: "https://issuer.example", allowed_audiences: ["umpire"] },
  })
  const ids = {
    org_id: idOf(organization),
    set_id: idOf(set.data),
    key_id: idOf(other.data),
    provider_id: z.object({ id: z.string() }).safeParse(provider.data).data?.id ?? "nothing",
  }
  return { url, key, ids }
}

const addressOf = ({ path }: Endpoint, ids: Target["ids"]): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? "nothing")

const answerMsMax = 120_000

/** The status of the answer. */
export async function send(
  { url, key, ids }: Target,
  endpoint: Endpoint,
  { contentType, text }: HostileBody,
  headers: Record<string, string> = {},
): Promise<number> {
  const body = headers["content-encoding"] === "gzip" ? gzipSync(text) : text
  const response = await fetch(url + addressOf(endpoint, ids), {
    method: endpoint.method,
    headers: { authorization: `Bearer ${key}`, "content-type": contentType, ...headers },
    body,
    signal: AbortSignal.timeout(answerMsMax),
  })
  await response.arrayBuffer()
  return response.status
}

export type Manner = "compressed" | "slow" | "aborted" | "unread" | "pipelined"
export const manners: readonly Manner[] = ["compressed", "slow", "aborted", "unread", "pipelined"]

const heldMs = 500
const pipelinedRequests = 100

/** The same body by a client that behaves badly. Returns the status where there is one. */
export async function misbehave(
  target: Target,
  endpoint: Endpoint,
  body: HostileBody,
  manner: Manner,
): Promise<number | null> {
  if (manner === "compressed") return await send(target, endpoint, body, { "content-encoding": "gzip" })
  const { hostname, port } = new URL(target.url)
  const head = (length: number): string =>
    `${endpoint.method} ${addressOf(endpoint, target.ids)} HTTP/1.1\r\nhost: ${hostname}\r\n` +
    `authorization: Bearer ${target.key}\r\ncontent-type: ${body.contentType}\r\ncontent-length: ${length}\r\n\r\n`
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
