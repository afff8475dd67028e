/** What the operator's commands have in common: their parts, and how they read their input. */
import { z } from "zod"
import type { Catalog } from "../../base/catalog.ts"
import { Fault } from "../../contract/errors.ts"
import type { Sql } from "../../store/sql.ts"
import type { ControlParts } from "../change.ts"

export interface OperatorParts extends ControlParts {
  /** Read when a command needs it: without a running server that takes a moment. */
  catalog(): Promise<Catalog>
  /** Who moves money in for new billing accounts; the local provider unless told. */
  readonly provider?: string
  /** The address of this installation as browsers see it. */
  publicUrl(): string
}

/** Where a one-time link signs in. In the fragment, which browsers do not send: it reaches no log of a proxy. */
export const signInAddress = (parts: Pick<OperatorParts, "publicUrl">, link: string): string =>
  `${parts.publicUrl().replace(/\/$/, "")}/sign-in#link=${link}`

export type Operation = (input: unknown) => Promise<unknown>
export type Operations = Readonly<Record<string, Operation>>

export const OrganizationInput = z.strictObject({ organization: z.string().optional() })

export function read<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const parsed = schema.safeParse(input ?? {})
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new Fault(
    "invalid_request",
    `Cannot run the command: ${issue?.path.join(".") || "its input"}: ${issue?.message ?? "invalid"}`,
  )
}

/** The named organization, or the only one there is. */
export async function organizationOf(sql: Sql, named: string | undefined): Promise<string> {
  const rows = await sql.query<{ id: string }>(
    "SELECT id FROM organizations WHERE deleted_at IS NULL AND ($1::text IS NULL OR id = $1) ORDER BY id LIMIT 2",
    [named ?? null],
  )
  const [only, another] = rows
  if (!only)
    throw new Fault(
      "not_found",
      named
        ? `Cannot find the organization ${named}`
        : "Cannot find an organization: start the server once first",
    )
  if (another)
    throw new Fault(
      "invalid_request",
      "Cannot tell which organization is meant: there are several; name one with --organization",
    )
  return only.id
}
