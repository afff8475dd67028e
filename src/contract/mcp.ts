/** The Model Context Protocol at /mcp: streamable HTTP without sessions, one JSON-RPC message a request. */
import { z } from "zod"
import { bodyText, recordOf } from "./check.ts"
import { endpoint } from "./endpoint.ts"

/** Every request says its version and nothing is negotiated before it. */
export const statelessVersion = "2026-07-28"
/** Those that begin with `initialize`, the newest first: what a client of another version is offered. */
export const mcpVersions = ["2025-11-25", "2025-06-18", "2025-03-26"] as const
export const mcpVersionHeader = "mcp-protocol-version"

/** Rows that `label_file` takes in one request; the command on a person's machine sends a file in several. */
export const labelledRowsMax = 100

export const rpcCodes = {
  parseError: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  resourceNotFound: -32_002,
  /** Refused before it was dispatched: `data.code` says why. */
  refused: -32_000,
  headerMismatch: -32_020,
  unsupportedVersion: -32_022,
} as const

/** What a Fault on this surface may carry as its details: the error as JSON-RPC has it. */
export interface RpcFailure {
  readonly id?: string | number | undefined
  readonly rpcCode: number
  readonly data?: unknown
}

/** A failure that JSON-RPC has a code for. */
export class RpcError extends Error {
  override readonly name = "RpcError"
  readonly code: number
  readonly details: unknown

  constructor(code: number, message: string, details?: unknown) {
    super(message)
    this.code = code
    this.details = details
  }
}

const mebibyte = 1024 * 1024
/** The arguments of a tool are named by its questions. */
const keysMax = 4096

export const McpMessage = z
  .looseObject({
    jsonrpc: z.literal("2.0"),
    id: z
      .union([z.string().max(256), z.number()])
      .optional()
      .describe("Absent in notifications."),
    method: z.string().max(256).optional().describe("Absent in responses."),
    params: recordOf(bodyText(), z.unknown(), keysMax).optional(),
  })
  .meta({ id: "McpMessage", description: "A JSON-RPC 2.0 message of the Model Context Protocol." })
export type McpMessage = z.infer<typeof McpMessage>

const callMcp = endpoint({
  method: "POST",
  path: "/mcp",
  area: "Agents",
  surface: "mcp",
  access: { principals: ["session", "key", "workload"], permission: "inference" },
  summary: "Call the MCP server; a notification is answered 202",
  body: McpMessage,
  reads: "bytes",
  bodyBytesMax: 4 * mebibyte,
  output: McpMessage,
  accepts: true,
  errors: [
    "malformed_json",
    "body_over_limit",
    "not_json",
    "invalid_header",
    "origin_refused",
    "not_found",
    "invalid_request",
  ],
})

export const mcpTable = { callMcp }
