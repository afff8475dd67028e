/** The operator's commands about budgets and limits of tags. */
import { z } from "zod"
import { GivenTagLimits } from "../../contract/platform/tag-budgets.ts"
import { tagKeyForm, tagLimits } from "../../contract/tags.ts"
import { change, systemCaller } from "../change.ts"
import { changeTagBudget, showTagBudgets } from "../tag-budgets.ts"
import { type Operations, type OperatorParts, OrganizationInput, organizationOf, read } from "./input.ts"

const SetInput = z.strictObject({
  organization: z.string().optional(),
  key: z.string().regex(tagKeyForm),
  value: z.string().trim().min(1).max(tagLimits.valueCharactersMax),
  ...GivenTagLimits,
})

export function budgetOperations(parts: OperatorParts): Operations {
  return {
    "budgets.list": async (input) => {
      const { organization } = read(OrganizationInput, input)
      const organizationId = await organizationOf(parts.database, organization)
      return await showTagBudgets(parts.database, organizationId, parts.clock.nowMs())
    },
    "budgets.set": async (input) => {
      const { organization, ...given } = read(SetInput, input)
      return await change(parts, systemCaller, async (changing) => {
        const organizationId = await organizationOf(changing.sql, organization)
        return await changeTagBudget(changing, organizationId, given)
      })
    },
  }
}
