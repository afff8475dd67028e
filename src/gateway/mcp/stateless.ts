/** Revision 2026-07-28 of the protocol: every request says its version, its client and, in headers, what it asks for. */
import { objectOf } from "../../base/json.ts"
import type { RequestFacts } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import { type McpMessage, mcpVersionHeader, rpcCodes, statelessVersion } from "../../contract/mcp.ts"
import type { McpDeps } from "./resources.ts"

const metaPrefix = "io.modelcontextprotocol/"
const versionKey = `${metaPrefix}protocolVersion`

const metaOf = ({ params }: McpMessage): Readonly<Record<string, unknown>> => objectOf(params?.["_meta"])

export const isStateless = (message: McpMessage, request: RequestFacts): boolean =>
  request.header(mcpVersionHeader) === statelessVersion || metaOf(message)[versionKey] !== undefined

/** Intermediaries route by the headers: what they say must be what the message says. */
export function checkStateless(message: McpMessage, request: RequestFacts): void {
  const { id, method, params = {} } = message
  const meta = metaOf(message)
  const refuse = (rpcCode: number, why: string, data?: unknown): Fault =>
    new Fault("invalid_header", `Cannot answer: ${why}`, { details: { id, rpcCode, data } })
  const version = meta[versionKey]
  if (version !== undefined && version !== statelessVersion)
    throw refuse(
      rpcCodes.unsupportedVersion,
      "the protocol version of _meta is not one that the server speaks so",
      {
        supported: [statelessVersion],
        requested: typeof version === "string" ? version.slice(0, 64) : null,
      },
    )
  const expected = [
    [mcpVersionHeader, version],
    ["mcp-method", method],
    ...(method === "tools/call" ? [["mcp-name", params["name"]] as const] : []),
    ...(method === "resources/read" ? [["mcp-name", params["uri"]] as const] : []),
  ] as const
  for (const [header, said] of expected)
    if (decoded(request.header(header)) !== said)
      throw refuse(rpcCodes.headerMismatch, `the header ${header} does not say what the message says`)
  const capabilities = meta[`${metaPrefix}clientCapabilities`]
  if (typeof capabilities !== "object" || capabilities === null)
    throw refuse(rpcCodes.invalidParams, "_meta does not say the capabilities of the client")
}

/** Names that are not plain ASCII come in base64 between marks. */
function decoded(value: string | null): string | null {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(value ?? "")?.[1]
  return encoded === undefined ? value : Buffer.from(encoded, "base64").toString()
}

export const serverInfo = ({ version }: McpDeps): object => ({ name: "umpire", title: "Umpire", version })

/** A result that is whole; what can be read again is not to be kept: question sets change, and are of one organization. */
export function completed(deps: McpDeps, { method = "" }: McpMessage, result: unknown): unknown {
  const isCacheable = method !== "tools/call"
  return {
    // Every result is an object.
    ...(result as object),
    resultType: "complete",
    ...(isCacheable ? { ttlMs: 0, cacheScope: "private" } : {}),
    _meta: { [`${metaPrefix}serverInfo`]: serverInfo(deps) },
  }
}
