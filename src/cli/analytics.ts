/** `umpire analytics`: imports, exports and prunes events, and checks them against the ledger. */
import { resolve } from "node:path"
import { type CliContext, type Command, UsageError, text } from "./command.ts"
import type { Operate } from "./operator.ts"
import { drawTable } from "./table.ts"

interface Verdict {
  readonly ok: boolean
  readonly from: string
  readonly to: string
  readonly events: number
  readonly ledger: number
  readonly differences_count: number
  readonly differences: readonly {
    readonly organization_id: string
    readonly day: string
    readonly field: string
    readonly events: string
    readonly ledger: string
  }[]
}

const exitFailure = 1

export const analytics = (operate: (context: CliContext) => Operate): Command => ({
  usage: [
    "umpire analytics status",
    "umpire analytics import events.jsonl",
    "umpire analytics export events.parquet [--organization org_...] [--from 2026-01-01T00:00:00Z] [--to ...]",
    "umpire analytics prune [--days 90]",
    "umpire analytics verify [--from 2026-01-01T00:00:00Z] [--to ...]",
  ],
  options: {
    organization: { type: "string", short: "o" },
    from: { type: "string" },
    to: { type: "string" },
    days: { type: "string" },
    json: { type: "boolean" },
  },
  optionHelp: {
    organization: "only the events of this organization",
    from: "only what began at or after this time",
    to: "only what began before this time",
    days: "days to keep; defaults to analytics.retention_days",
    json: "print JSON",
  },
  run: async (context) => await run(context, operate(context)),
})

async function run(context: CliContext, operate: Operate): Promise<number> {
  const [action, file] = context.positionals
  switch (action) {
    case "status":
      return show(context, await operate("analytics.status", {}), drawStatus)
    case "import":
      return show(context, await operate("analytics.import", { file: path(context, file) }), (result) => {
        return `${eventsOf(result)} events are imported.\n`
      })
    case "export": {
      const input = { file: path(context, file), ...given(context, ["organization", "from", "to"]) }
      return show(context, await operate("analytics.export", input), (result) => {
        return `${eventsOf(result)} events are in ${input.file}.\n`
      })
    }
    case "prune":
      return show(context, await operate("analytics.prune", daysOf(context)), drawPruned)
    case "verify":
      return verify(context, await operate("analytics.verify", given(context, ["from", "to"])))
    default:
      throw new UsageError("say status, import, export, prune or verify")
  }
}

/** The server reads and writes the file; it runs on this machine but maybe elsewhere in its directories. */
function path({ workingDirectory }: CliContext, file: string | undefined): string {
  if (!file) throw new UsageError("which file? umpire analytics import events.jsonl")
  return resolve(workingDirectory, file)
}

function given(context: CliContext, options: readonly string[]): Record<string, string> {
  const values = options.map((option) => [option, text(context, option)] as const)
  return Object.fromEntries(
    values.flatMap(([option, value]) => (value === undefined ? [] : [[option, value]])),
  )
}

function daysOf(context: CliContext): { days?: number } {
  const days = text(context, "days")
  if (days === undefined) return {}
  if (!/^\d+$/.test(days)) throw new UsageError("--days takes a whole number")
  return { days: Number(days) }
}

function verify(context: CliContext, result: unknown): number {
  // What analytics.verify answers.
  const verdict = result as Verdict
  show(context, result, () => drawVerdict(verdict))
  return verdict.ok ? 0 : exitFailure
}

function show(context: CliContext, result: unknown, draw: (result: unknown) => string): number {
  context.stdout.write(context.values["json"] === true ? `${JSON.stringify(result)}\n` : draw(result))
  return 0
}

// What the operations of the same names answer.
const eventsOf = (result: unknown): number => (result as { events: number }).events

function drawStatus(result: unknown): string {
  const { events, oldestMs, newestMs } = result as {
    events: number
    oldestMs: number | null
    newestMs: number | null
  }
  if (oldestMs === null || newestMs === null) return "No events are kept.\n"
  return `${events} events, from ${new Date(oldestMs).toISOString()} to ${new Date(newestMs).toISOString()}.\n`
}

function drawPruned(result: unknown): string {
  const { before, pruned, kept } = result as { before: string; pruned: number; kept: number }
  return `${pruned} events from before ${before} are gone, ${kept} are kept.\n`
}

function drawVerdict({ ok, from, to, events, ledger, differences, differences_count }: Verdict): string {
  const head = `From ${from} to ${to}: ${events} charged events, ${ledger} charged sequences in the ledger.\n`
  if (ok) return `${head}They agree.\n`
  const rows = differences.map((one) => [one.day, one.organization_id, one.field, one.events, one.ledger])
  const table = drawTable(["day", "organization", "field", "events", "ledger"], rows)
  const more =
    differences_count > differences.length ? `and ${differences_count - differences.length} more\n` : ""
  return `${head}They differ:\n${table}${more}`
}
