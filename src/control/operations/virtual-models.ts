/** The operator's changes to an organization's virtual models. */
import { z } from "zod"
import { Fault } from "../../contract/errors.ts"
import { ruleFields, virtualModelLimits, virtualNameForm } from "../../contract/platform/virtual-models.ts"
import { listVirtualModels } from "../../store/virtual-models.ts"
import { change, systemCaller } from "../change.ts"
import { lockAll, removeVirtualModel, requireRule, saveVirtualModel, toView } from "../virtual-models.ts"
import { type Operations, type OperatorParts, OrganizationInput, organizationOf, read } from "./input.ts"

const NameInput = z.strictObject({ organization: z.string().optional(), name: z.string() })

const SaveInput = z.strictObject({
  ...NameInput.shape,
  name: z
    .string()
    .max(virtualModelLimits.nameCharactersMax)
    .regex(virtualNameForm, { error: "letters, digits and . _ - / : are needed" }),
  alias: ruleFields.alias.optional(),
  fallback: ruleFields.fallback.optional(),
  split: ruleFields.split.optional(),
  cascade: ruleFields.cascade.optional(),
})

export function virtualModelOperations(parts: OperatorParts): Operations {
  return {
    "models.virtual": async (input) => {
      const { organization } = read(OrganizationInput, input)
      const organizationId = await organizationOf(parts.database, organization)
      const all = await listVirtualModels(parts.database, organizationId)
      return all.map(toView)
    },
    "models.save": async (input) => {
      const { organization, name, ...fields } = read(SaveInput, input)
      const rule = requireRule(fields)
      const catalog = await parts.catalog()
      return await change(parts, systemCaller, async (scope) => {
        const organizationId = await organizationOf(scope.sql, organization)
        const given = { organizationId, name, rule, createdBy: null }
        return toView(await saveVirtualModel({ ids: parts.ids, catalog }, scope, given))
      })
    },
    "models.remove": async (input) => {
      const { organization, name } = read(NameInput, input)
      return await change(parts, systemCaller, async (scope) => {
        const all = await lockAll(scope.sql, await organizationOf(scope.sql, organization))
        const virtual = all.find((one) => one.name === name)
        if (!virtual)
          throw new Fault(
            "not_found",
            `Cannot remove ${name}: the organization has no virtual model of this name`,
          )
        await removeVirtualModel(scope, all, virtual)
        return { name }
      })
    },
  }
}
