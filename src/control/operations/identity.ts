/** The operator's commands about workload identity: which providers there are, and what one would decide. */
import { z } from "zod"
import { Fault } from "../../contract/errors.ts"
import type { Identity } from "../identity/identity.ts"
import { findIdentityProvider, listIdentityProviders } from "../../store/identity-providers.ts"
import { type Operations, type OperatorParts, OrganizationInput, organizationOf, read } from "./input.ts"

const TestInput = z.strictObject({
  organization: z.string().optional(),
  id: z.string(),
  subject_token: z.string().optional(),
  certificate_chain: z.string().optional(),
})

export function identityOperations(
  parts: Pick<OperatorParts, "database">,
  identity: () => Promise<Pick<Identity, "rehearse">>,
): Operations {
  return {
    "identity.list": async (input) => await listProviders(parts, read(OrganizationInput, input)),
    "identity.test": async (input) => {
      const { organization, id, ...given } = read(TestInput, input)
      const organizationId = await organizationOf(parts.database, organization)
      const provider = await findIdentityProvider(parts.database, organizationId, id)
      if (!provider) throw new Fault("not_found", `Cannot find ${id}: the organization has no such provider`)
      return await (await identity()).rehearse(provider, given)
    },
  }
}

async function listProviders(
  { database }: Pick<OperatorParts, "database">,
  input: z.infer<typeof OrganizationInput>,
): Promise<unknown> {
  const organizationId = await organizationOf(database, input.organization)
  const providers = await listIdentityProviders(database, organizationId)
  return providers.map(({ id, name, active, config, policyRevision }) => ({
    id,
    name,
    active,
    type: config.type,
    policy_revision: Number(policyRevision),
  }))
}
