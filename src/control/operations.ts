/** What an operator does from the command line, on the store itself; the running server and the CLI share it. */
import { z } from "zod"
import type { Clock } from "../base/clock.ts"
import type { Ids } from "../base/ids.ts"
import { permissions } from "../contract/access.ts"
import { Fault } from "../contract/errors.ts"
import { insertKey, pageKeys, revokeKey } from "../store/keys.ts"
import type { Database } from "../store/sql.ts"
import { newKeyValue } from "./bearer.ts"

export interface OperatorParts {
  readonly database: Database
  readonly clock: Clock
  readonly ids: Ids
}

const keysListedMax = 200

export const CreateKeyInput = z.strictObject({
  organization: z.string().optional(),
  name: z.string().trim().min(1).max(200),
  permissions: z.array(z.enum(permissions)).min(1),
  expires_at: z.iso.datetime().optional(),
})

const OrganizationInput = z.strictObject({ organization: z.string().optional() })
const KeyInput = z.strictObject({ organization: z.string().optional(), id: z.string() })

export type Operation = (input: unknown) => Promise<unknown>

export function operations(parts: OperatorParts): Readonly<Record<string, Operation>> {
  return {
    ping: async () => "pong",
    "keys.create": async (input) => await createKey(parts, read(CreateKeyInput, input)),
    "keys.list": async (input) => await listKeys(parts, read(OrganizationInput, input)),
    "keys.revoke": async (input) => await endKey(parts, read(KeyInput, input)),
  }
}

async function createKey(
  { database, clock, ids }: OperatorParts,
  input: z.infer<typeof CreateKeyInput>,
): Promise<unknown> {
  const now = new Date(clock.nowMs())
  const id = ids.next("key")
  const organizationId = await organizationOf(database, input.organization)
  const { value, secretHash } = newKeyValue(id)
  await insertKey(database, {
    id,
    organizationId,
    name: input.name,
    permissions: input.permissions,
    scope: "organization",
    secretHash,
    createdAt: now,
    updatedAt: now,
    ...(input.expires_at === undefined ? {} : { expiresAt: new Date(input.expires_at) }),
  })
  return {
    id,
    organization_id: organizationId,
    name: input.name,
    permissions: input.permissions,
    secret: value,
  }
}

async function listKeys(
  { database }: OperatorParts,
  input: z.infer<typeof OrganizationInput>,
): Promise<unknown> {
  const organizationId = await organizationOf(database, input.organization)
  const { items } = await pageKeys(database, organizationId, { limit: keysListedMax })
  return items.map(({ id, name, permissions, createdAt, lastUsedAt, expiresAt }) => ({
    id,
    name,
    permissions,
    created_at: createdAt.toISOString(),
    last_used_at: lastUsedAt?.toISOString() ?? null,
    expires_at: expiresAt?.toISOString() ?? null,
  }))
}

async function endKey({ database, clock }: OperatorParts, input: z.infer<typeof KeyInput>): Promise<unknown> {
  const organizationId = await organizationOf(database, input.organization)
  const ended = await revokeKey(database, organizationId, input.id, new Date(clock.nowMs()))
  if (!ended) throw new Fault("not_found", `Cannot revoke ${input.id}: the organization has no such key`)
  return { id: ended.id, revoked: true }
}

/** The named organization, or the only one there is. */
async function organizationOf(database: Database, named: string | undefined): Promise<string> {
  const rows = await database.query<{ id: string; name: string }>(
    "SELECT id, name FROM organizations WHERE deleted_at IS NULL AND ($1::text IS NULL OR id = $1) ORDER BY id LIMIT 2",
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

function read<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const parsed = schema.safeParse(input ?? {})
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new Fault(
    "invalid_request",
    `Cannot run the command: ${issue?.path.join(".") || "its input"}: ${issue?.message ?? "invalid"}`,
  )
}
