/** `umpire access`: answers requests for models that are not public. */
import type { ModelAccessRequest } from "../contract/platform/models.ts"
import { operatorCommand, operates } from "./actions.ts"
import { columns } from "./table.ts"

const decide = (state: "grant" | "deny") =>
  operates("decideModelAccess", {
    args: { model: `which model? umpire access ${state} <model>` },
    input: () => ({ state }),
    draw: (decided) => `${decided.model_sku}: ${decided.state}.\n`,
  })

export const access = operatorCommand({
  usage: [
    "umpire access list [--organization org_...]",
    "umpire access grant <model> [--organization org_...]",
    "umpire access deny <model> [--organization org_...]",
  ],
  inOrganization: true,
  actions: {
    list: operates("listModelAccessRequests", {
      draw: columns<ModelAccessRequest>({
        model: (one) => one.model_sku,
        state: (one) => one.state,
        "requested by": (one) => one.requested_by ?? "-",
        since: (one) => one.updated_at,
      }),
    }),
    grant: decide("grant"),
    deny: decide("deny"),
  },
})
