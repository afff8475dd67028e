/** What the MCP server is made of, and who calls it. */
import type { Call, Handlers } from "../../contract/endpoint.ts"
import type { Table } from "../../contract/table.ts"
import type { Database } from "../../store/sql.ts"

export interface McpParts {
  readonly database: Database
  /** The handlers of the endpoints that its tools are: what they check, record and charge is the same here. */
  readonly handlers: Pick<Handlers<Table>, "createDecision" | "decideQuestionSet">
  /** The model of decisions that name none. */
  readonly model: string
  readonly version: string
  /** Markdown pages by file name. */
  readonly docs: ReadonlyMap<string, string>
  /** Whether a page of this origin may call. */
  isAllowedOrigin(origin: string): boolean
}

export type McpCaller = Pick<Call, "principal" | "request"> & {
  readonly standing: NonNullable<Call["standing"]>
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

export const rpcCodes = {
  methodNotFound: -32_601,
  invalidParams: -32_602,
  resourceNotFound: -32_002,
} as const
