/** The operator's commands about API keys. */
import { z } from "zod"
import { permissions } from "../../contract/access.ts"
import { Fault } from "../../contract/errors.ts"
import { KeyRateLimit } from "../../contract/platform/keys.ts"
import { GivenKeyLimits } from "../../contract/platform/key-limits.ts"
import { readBudgetStates } from "../../store/budgets.ts"
import { insertKey, pageKeys, revokeKey, updateKey } from "../../store/keys.ts"
import { newKeyValue } from "../principals.ts"
import { change, systemCaller } from "../change.ts"
import { limitsChanged, limitsOf } from "../key-limits.ts"
import { limitColumns, toApiKey } from "../keys.ts"
import { type Operations, type OperatorParts, OrganizationInput, organizationOf, read } from "./input.ts"

const keysListedMax = 200

const GivenLimits = { ...GivenKeyLimits, rate_limit: KeyRateLimit.nullish() }

const CreateKeyInput = z.strictObject({
  organization: z.string().optional(),
  name: z.string().trim().min(1).max(200),
  permissions: z.array(z.enum(permissions)).min(1),
  expires_at: z.iso.datetime().optional(),
  ...GivenLimits,
})
const KeyInput = z.strictObject({ organization: z.string().optional(), id: z.string() })

const LimitKeyInput = z.strictObject({ ...KeyInput.shape, ...GivenLimits })

export function keyOperations(parts: OperatorParts): Operations {
  return {
    "keys.create": async (input) => await createKey(parts, read(CreateKeyInput, input)),
    "keys.list": async (input) => await listKeys(parts, read(OrganizationInput, input)),
    "keys.limit": async (input) => await limitKey(parts, read(LimitKeyInput, input)),
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
      ...givenColumns(input),
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
  { database, clock }: OperatorParts,
  input: z.infer<typeof OrganizationInput>,
): Promise<unknown> {
  const organizationId = await organizationOf(database, input.organization)
  const { items } = await pageKeys(database, organizationId, { limit: keysListedMax })
  const states = await readBudgetStates(database, items, clock.nowMs())
  return items.map((key) => toApiKey(key, states.get(key.id)))
}

async function limitKey(parts: OperatorParts, input: z.infer<typeof LimitKeyInput>): Promise<unknown> {
  const limits = givenColumns(input)
  return await change(parts, systemCaller, async ({ sql, now, audit, touched }) => {
    const organizationId = await organizationOf(sql, input.organization)
    const key = await updateKey(sql, organizationId, input.id, { ...limits, updatedAt: now })
    if (!key) throw new Fault("not_found", `Cannot limit ${input.id}: the organization has no such key`)
    await limitsChanged(sql, key.id, limits)
    const shown = toApiKey(key, (await readBudgetStates(sql, [key], now.getTime())).get(key.id))
    await audit({
      organizationId,
      action: "api_key.update",
      resource: { type: "api_key", id: key.id },
      before: null,
      after: shown,
    })
    touched({ table: "api_keys", id: key.id })
    return shown
  })
}

/** What is left out stays as it is. An operator may give a key more than its organization has. */
const givenColumns = (input: Omit<z.infer<typeof LimitKeyInput>, "id">) => ({
  ...limitsOf(input),
  ...(input.rate_limit === undefined ? {} : limitColumns(input.rate_limit)),
})

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
