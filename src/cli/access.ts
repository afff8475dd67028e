/** `umpire access`: answers requests for models that are not public. */
import {
  type CliContext,
  type Command,
  UsageError,
  organizationHelp,
  organizationOptions,
  organizationScope,
  show,
} from "./command.ts"
import type { Operate } from "./operator.ts"
import { drawTable } from "./table.ts"

interface ListedRequest {
  readonly model_sku: string
  readonly state: string
  readonly requested_by: string | null
  readonly updated_at: string
}

export const access = (operate: (context: CliContext) => Operate): Command => ({
  usage: [
    "umpire access list [--organization org_...]",
    "umpire access grant <model> [--organization org_...]",
    "umpire access deny <model> [--organization org_...]",
  ],
  options: organizationOptions,
  optionHelp: organizationHelp,
  run: async (context) => await run(context, operate(context)),
})

async function run(context: CliContext, operate: Operate): Promise<number> {
  const [action, model] = context.positionals
  const scope = organizationScope(context)
  switch (action) {
    case "list":
      return show(context, await operate("access.list", scope), drawList)
    case "grant":
    case "deny":
      if (!model) throw new UsageError(`which model? umpire access ${action} <model>`)
      return show(context, await operate(`access.${action}`, { ...scope, model }), drawDecision)
    default:
      throw new UsageError("say list, grant or deny")
  }
}

function drawDecision(result: unknown): string {
  // What access.grant and access.deny answer.
  const { model_sku, state } = result as ListedRequest
  return `${model_sku}: ${state}.\n`
}

function drawList(result: unknown): string {
  // What access.list answers.
  const rows = (result as ListedRequest[]).map((one) => [
    one.model_sku,
    one.state,
    one.requested_by ?? "-",
    one.updated_at,
  ])
  return drawTable(["model", "state", "requested by", "since"], rows)
}
