/** The operator's commands about API keys. */
import { z } from "zod"
import { permissions } from "../../contract/access.ts"
import { Fault } from "../../contract/errors.ts"
import { insertKey, pageKeys, revokeKey } from "../../store/keys.ts"
import { newKeyValue } from "../principals.ts"
import { change, systemCaller } from "../change.ts"
import { toApiKey } from "../keys.ts"
import { type Operations, type OperatorParts, OrganizationInput, organizationOf, read } from "./input.ts"

const keysListedMax = 200

const CreateKeyInput = z.strictObject({
  organization: z.string().optional(),
  name: z.string().trim().min(1).max(200),
  permissions: z.array(z.enum(permissions)).min(1),
  expires_at: z.iso.datetime().optional(),
})
const KeyInput = z.strictObject({ organization: z.string().optional(), id: z.string() })

export function keyOperations(parts: OperatorParts): Operations {
  return {
    "keys.create": async (input) => await createKey(parts, read(CreateKeyInput, input)),
    "keys.list": async (input) => await listKeys(parts, read(OrganizationInput, input)),
    "keys.revoke": async (input) => await endKey(parts, read(KeyInput, input)),
  }
}

async function createKey(parts: OperatorParts, input: z.infer<typeof CreateKeyInput>): Promise<unknown> {
  const id = parts.ids.next("key")
  const { value, secretHash } = newKeyValue(id)
  const { name, permissions: given } = input
  return await change(parts, systemCaller, async ({ sql, now, audit }) => {
    const organizationId = await organizationOf(sql, input.organization)
    const key = await insertKey(sql, {
      id,
      organizationId,
      name,
      permissions: given,
      scope: "organization",
      secretHash,
      createdAt: now,
      updatedAt: now,
      ...(input.expires_at === undefined ? {} : { expiresAt: new Date(input.expires_at) }),
    })
    await audit({
      organizationId,
      action: "api_key.create",
      resource: { type: "api_key", id },
      before: null,
      after: toApiKey(key),
    })
    return { id, organization_id: organizationId, name, permissions: given, secret: value }
  })
}

async function listKeys(
  { database }: OperatorParts,
  input: z.infer<typeof OrganizationInput>,
): Promise<unknown> {
  const organizationId = await organizationOf(database, input.organization)
  const { items } = await pageKeys(database, organizationId, { limit: keysListedMax })
  return items.map(toApiKey)
}

async function endKey(parts: OperatorParts, input: z.infer<typeof KeyInput>): Promise<unknown> {
  return await change(parts, systemCaller, async ({ sql, now, audit, touched }) => {
    const organizationId = await organizationOf(sql, input.organization)
    const ended = await revokeKey(sql, organizationId, input.id, now)
    if (!ended) throw new Fault("not_found", `Cannot revoke ${input.id}: the organization has no such key`)
    await audit({
      organizationId,
      action: "api_key.delete",
      resource: { type: "api_key", id: ended.id },
      before: toApiKey(ended),
      after: null,
    })
    touched({ table: "api_keys", id: ended.id })
    return { id: ended.id, revoked: true }
  })
}
