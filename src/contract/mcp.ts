/** The Model Context Protocol at /mcp: streamable HTTP without sessions, one JSON-RPC message a request. */
import { z } from "zod"
import { bodyText, recordOf } from "./check.ts"
import { endpoint } from "./endpoint.ts"

/** The newest first: what a client of another version is offered. */
export const mcpVersions = ["2025-11-25", "2025-06-18", "2025-03-26"] as const
export const mcpVersionHeader = "mcp-protocol-version"

/** Rows that `label_file` takes in one request; the command on a person's machine sends a file in several. */
export const labelledRowsMax = 100

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

export const callMcp = endpoint({
  method: "POST",
  path: "/mcp",
  area: "Agents",
  surface: "service",
  access: { principals: ["session", "key", "workload"], permission: "inference" },
  summary: "Call the MCP server; a notification is answered 202",
  body: McpMessage,
  reads: "bytes",
  bodyBytesMax: 4 * mebibyte,
  output: McpMessage,
  accepts: true,
  errors: ["malformed_json", "body_over_limit", "not_json", "invalid_header", "origin_refused"],
})

export const mcpTable = { callMcp }
