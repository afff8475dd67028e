/** The operator's endpoints about an organization's virtual models. */
import type { Handlers } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { OperatorTable } from "../../contract/operator.ts"
import { listVirtualModels } from "../../store/virtual-models.ts"
import { acting, change } from "../audited-change.ts"
import { lockAll, removeVirtualModel, requireRule, saveVirtualModel, toView } from "../virtual-models.ts"
import type { OperatorDeps } from "./deps.ts"

type Names = "listVirtualModels" | "saveVirtualModel" | "removeVirtualModel"

export function virtualModelOperatorHandlers(deps: OperatorDeps): Pick<Handlers<OperatorTable>, Names> {
  return {
    listVirtualModels: async (call) =>
      (await listVirtualModels(deps.database, acting(call).organizationId)).map(toView),
    async saveVirtualModel(call) {
      const { organizationId } = acting(call)
      const { name, ...fields } = call.body
      const rule = requireRule(fields)
      const catalog = await deps.catalog()
      return await change(deps, call, async (scope) => {
        const given = { organizationId, name, rule, createdBy: null }
        return toView(await saveVirtualModel({ ids: deps.ids, catalog }, scope, given))
      })
    },
    async removeVirtualModel(call) {
      const { organizationId } = acting(call)
      const { name } = call.params
      await change(deps, call, async (scope) => {
        const all = await lockAll(scope.sql, organizationId)
        const virtual = all.find((one) => one.name === name)
        if (!virtual)
          throw new Fault(
            "not_found",
            `Cannot remove ${name}: the organization has no virtual model of this name`,
          )
        await removeVirtualModel(scope, all, virtual)
      })
    },
  }
}
