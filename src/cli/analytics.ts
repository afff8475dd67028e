/** `umpire analytics`: imports, exports and prunes events, and checks them against the ledger. */
import { resolve } from "node:path"
import type { OutputOf } from "../contract/endpoint.ts"
import type { EventOperatorTable } from "../contract/operator.ts"
import { operatorCommand, operates } from "./actions.ts"
import { type CliContext, required, valueOption } from "./command.ts"
import { columns } from "./table.ts"
import { plural } from "../base/plural.ts"

type Verdict = OutputOf<EventOperatorTable["verifyEvents"]>

const exitFailure = 1
const range = { from: "from", to: "to" } as const

export const analytics = operatorCommand({
  usage: [
    "umpire analytics status",
    "umpire analytics import events.parquet",
    "umpire analytics export events.parquet [--organization org_...] [--from 2026-01-01T00:00:00Z] [--to ...]",
    "umpire analytics prune [--days 90]",
    "umpire analytics verify [--from 2026-01-01T00:00:00Z] [--to ...]",
  ],
  options: {
    organization: valueOption("only the events of this organization", "o"),
    from: valueOption("only what began at or after this time"),
    to: valueOption("only what began before this time"),
    days: valueOption("days to keep; defaults to analytics.retention_days"),
  },
  actions: {
    status: operates("getEventHoldings", { draw: drawStatus }),
    import: operates("importEvents", {
      input: fileOf,
      draw: ({ events }) => `${plural(events, "event is", "events are")} imported.\n`,
    }),
    export: operates("exportEvents", {
      fields: { organization: "organization", ...range },
      input: fileOf,
      draw: ({ events }, _, context) =>
        `${plural(events, "event is", "events are")} in ${fileOf(context).file}.\n`,
    }),
    prune: operates("pruneEvents", {
      fields: { days: "days" },
      draw: ({ before, pruned, kept }) =>
        `${plural(pruned, "event")} from before ${before} pruned, ${kept} kept.\n`,
    }),
    verify: operates("verifyEvents", {
      fields: range,
      draw: drawVerdict,
      status: ({ ok }) => (ok ? 0 : exitFailure),
    }),
  },
})

/** The server reads and writes the file; it runs on this machine but maybe elsewhere in its directories. */
function fileOf({ positionals, workingDirectory }: CliContext): { readonly file: string } {
  const file = required(positionals[1], "which file? umpire analytics import events.parquet")
  return { file: resolve(workingDirectory, file) }
}

function drawStatus({
  events,
  oldestMs,
  newestMs,
}: OutputOf<EventOperatorTable["getEventHoldings"]>): string {
  if (oldestMs === null || newestMs === null) return "No events are kept.\n"
  return `${plural(events, "event")}, from ${new Date(oldestMs).toISOString()} to ${new Date(newestMs).toISOString()}.\n`
}

const drawDifferences = columns<Verdict["differences"][number]>({
  day: ({ day }) => day,
  organization: ({ organization_id }) => organization_id,
  field: ({ field }) => field,
  events: ({ events }) => events,
  ledger: ({ ledger }) => ledger,
})

function drawVerdict({ ok, from, to, events, ledger, differences, differences_count }: Verdict): string {
  const head = `From ${from} to ${to}: ${events} charged events, ${ledger} charged sequences in the ledger.\n`
  if (ok) return `${head}They agree.\n`
  const left = differences_count - differences.length
  return `${head}They differ:\n${drawDifferences(differences)}${left > 0 ? `and ${left} more\n` : ""}`
}
