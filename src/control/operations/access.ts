/** The operator's answers to requests for models that are not public. */
import { z } from "zod"
import { pageModelAccess } from "../../store/model-access.ts"
import { change, systemCaller } from "../change.ts"
import { decideModelAccess, toRequest } from "../models.ts"
import { type Operations, type OperatorParts, OrganizationInput, organizationOf, read } from "./input.ts"

const requestsListedMax = 200

const DecisionInput = z.strictObject({ organization: z.string().optional(), model: z.string() })

export function accessOperations(parts: OperatorParts): Operations {
  return {
    "access.list": async (input) => {
      const { organization } = read(OrganizationInput, input)
      const organizationId = await organizationOf(parts.database, organization)
      const { items } = await pageModelAccess(parts.database, organizationId, { limit: requestsListedMax })
      return items.map(toRequest)
    },
    "access.grant": async (input) => await decide(parts, "grant", read(DecisionInput, input)),
    "access.deny": async (input) => await decide(parts, "deny", read(DecisionInput, input)),
  }
}

async function decide(
  parts: OperatorParts,
  state: "grant" | "deny",
  { organization, model }: z.infer<typeof DecisionInput>,
): Promise<unknown> {
  const catalog = await parts.catalog()
  return await change(parts, systemCaller, async (scope) => {
    const organizationId = await organizationOf(scope.sql, organization)
    const decision = { organizationId, modelSku: model, state }
    return toRequest(await decideModelAccess({ ids: parts.ids, catalog }, scope, decision))
  })
}
