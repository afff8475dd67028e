/** `umpire audit`: checks that no entry of the audit log was changed, removed or slipped in. */
import { type CliContext, type Command, UsageError, organizationScope, show } from "./command.ts"
import type { Operate } from "./operator.ts"

interface Finding {
  readonly organization_id: string
  readonly intact: boolean
  readonly position: number
  readonly reason: string | null
}

const exitBroken = 1

export const audit = (operate: (context: CliContext) => Operate): Command => ({
  usage: ["umpire audit verify [--organization org_...]"],
  options: { organization: { type: "string", short: "o" }, json: { type: "boolean" } },
  optionHelp: { organization: "one organization instead of all", json: "print JSON" },
  run: async (context) => await run(context, operate(context)),
})

/** The exit status says whether the log is intact, for scripts that watch over it. */
async function run(context: CliContext, operate: Operate): Promise<number> {
  if (context.positionals[0] !== "verify") throw new UsageError("say verify")
  const result = await operate("audit.verify", organizationScope(context))
  // What audit.verify answers.
  const findings = result as Finding[]
  show(context, findings, () => findings.map(draw).join(""))
  return findings.every(({ intact }) => intact) ? 0 : exitBroken
}

function draw({ organization_id, intact, position, reason }: Finding): string {
  return intact
    ? `${organization_id}: intact, ${position} entries\n`
    : `${organization_id}: BROKEN at entry ${position}: ${reason}\n`
}
