/** `umpire audit`: checks that no entry of the audit log was changed, removed or slipped in. */
import { operatorCommand, operates } from "./actions.ts"
import { valueOption } from "./command.ts"
import { plural } from "../base/plural.ts"

const exitBroken = 1

export const audit = operatorCommand({
  usage: ["umpire audit verify [--organization org_...]"],
  options: { organization: valueOption("one organization instead of all", "o") },
  actions: {
    verify: operates("verifyAuditLogs", {
      fields: { organization: "organization" },
      draw: (findings) =>
        findings
          .map(({ organization_id, intact, position, reason }) =>
            intact
              ? `${organization_id}: intact, ${plural(position, "entry", "entries")}\n`
              : `${organization_id}: BROKEN at entry ${position}: ${reason}\n`,
          )
          .join(""),
      // For scripts that watch over it.
      status: (findings) => (findings.every(({ intact }) => intact) ? 0 : exitBroken),
    }),
  },
})
