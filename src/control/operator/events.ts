/** The operator's endpoints about events: import, export, prune, and verify against the ledger. */
import type { Clock } from "../../base/clock.ts"
import type { Handlers, OutputOf } from "../../contract/endpoint.ts"
import { Fault } from "../../contract/errors.ts"
import type { EventOperatorTable } from "../../contract/operator.ts"
import type { EventBatch } from "../../store/events/event.ts"
import { EventEngineError } from "../../store/events/engine.ts"
import type { Events } from "../../store/events/events.ts"
import { sumUsage } from "../../store/usage.ts"
import type { ChargedSum } from "../../store/events/upkeep.ts"
import type { Database } from "../../store/sql.ts"

export interface EventOperatorDeps {
  readonly database: Database
  readonly clock: Clock
  readonly retentionDays: number
  /** Null where no engine is available. */
  readonly events: Events | null
  /** Gives other gateways what is imported, where each keeps events of its own. */
  readonly share?: ((batch: EventBatch) => Promise<void>) | undefined
  /** Puts what was used until now into the events and into the ledger, where a gateway runs. */
  settle(): Promise<void>
}

const dayMs = 86_400_000
const differencesMax = 20

type Verdict = OutputOf<EventOperatorTable["verifyEvents"]>

export function eventOperatorHandlers(deps: EventOperatorDeps): Handlers<EventOperatorTable> {
  return {
    getEventHoldings: async () => await eventsOf(deps).ask("holdings", null),
    importEvents: async ({ body }) => await told(eventsOf(deps).import(body.file, deps.share)),
    async exportEvents({ body: { file, organization, from, to } }) {
      const events = eventsOf(deps)
      await deps.settle()
      const range = { startMs: msOf(from, 0), endMs: msOf(to, Number.MAX_SAFE_INTEGER) }
      return await told(events.ask("export", { file, organizationId: organization, ...range }))
    },
    async pruneEvents({ body: { days = deps.retentionDays } }) {
      const beforeMs = deps.clock.nowMs() - days * dayMs
      const events = eventsOf(deps)
      const before = await events.ask("holdings", null)
      await events.ask("prune", { beforeMs })
      const after = await events.ask("holdings", null)
      return {
        before: new Date(beforeMs).toISOString(),
        pruned: before.events - after.events,
        kept: after.events,
      }
    },
    verifyEvents: async ({ query }) => await verify(deps, query),
  }
}

/** Days that are kept whole: older ones may be partly pruned, and their charges are not to be missed. */
async function verify(
  deps: EventOperatorDeps,
  { from, to }: { from?: string | undefined; to?: string | undefined },
): Promise<Verdict> {
  const events = eventsOf(deps)
  await deps.settle()
  const oldestKept = deps.clock.nowMs() - (deps.retentionDays - 1) * dayMs
  const startMs = Math.floor(msOf(from, Math.max(0, oldestKept)) / dayMs) * dayMs
  const endMs = Math.ceil(msOf(to, deps.clock.nowMs() + dayMs) / dayMs) * dayMs
  const [kept, charged] = await Promise.all([
    events.ask("sums", { organizationId: undefined, startMs, endMs }),
    sumUsage(deps.database, startMs, endMs),
  ])
  const differences = compare(byDay(kept), byDay(charged))
  return {
    ok: differences.length === 0,
    from: new Date(startMs).toISOString(),
    to: new Date(endMs).toISOString(),
    events: total(kept),
    ledger: total(charged),
    differences: differences.slice(0, differencesMax),
    differences_count: differences.length,
  }
}

const total = (sums: readonly ChargedSum[]): number => sums.reduce((sum, { sequences }) => sum + sequences, 0)

type DaySum = Omit<ChargedSum, "model">

/** Of all models: the ledger has a virtual model's usage under the models of its stages, the events under the one that answered. */
function byDay(sums: readonly ChargedSum[]): DaySum[] {
  return [...Map.groupBy(sums, keyOf).values()].flatMap(([first, ...others]) => {
    if (!first) return []
    const { model: _, ...start } = first
    return others.reduce<DaySum>(
      (total, one) => ({
        ...total,
        sequences: total.sequences + one.sequences,
        input_tokens: total.input_tokens + one.input_tokens,
        cached_input_tokens: total.cached_input_tokens + one.cached_input_tokens,
        output_tokens: total.output_tokens + one.output_tokens,
        ticks: String(BigInt(total.ticks) + BigInt(one.ticks)),
      }),
      start,
    )
  })
}

type Difference = Verdict["differences"][number]

const compared = ["sequences", "input_tokens", "cached_input_tokens", "output_tokens", "ticks"] as const

const keyOf = (sum: DaySum): string => JSON.stringify([sum.organization_id, sum.billing_account_id, sum.day])

function compare(kept: readonly DaySum[], charged: readonly DaySum[]): Difference[] {
  const byKey = new Map<string, { kept?: DaySum; charged?: DaySum }>()
  for (const sum of kept) byKey.set(keyOf(sum), { kept: sum })
  for (const sum of charged) byKey.set(keyOf(sum), { ...byKey.get(keyOf(sum)), charged: sum })
  return [...byKey.values()].flatMap((pair) => {
    const some = pair.kept ?? pair.charged
    if (!some) return []
    const { organization_id, billing_account_id } = some
    const day = new Date(some.day * dayMs).toISOString().slice(0, "YYYY-MM-DD".length)
    return compared
      .map((field) => ({
        field,
        events: String(pair.kept?.[field] ?? 0),
        ledger: String(pair.charged?.[field] ?? 0),
      }))
      .filter(({ events, ledger }) => events !== ledger)
      .map((difference) => ({ organization_id, billing_account_id, day, ...difference }))
  })
}

/** What is wrong with a file is said to the operator, who chose it. */
async function told<Output>(work: Promise<Output>): Promise<Output> {
  try {
    return await work
  } catch (cause) {
    if (cause instanceof EventEngineError) throw new Fault("invalid_request", cause.message, { cause })
    throw cause
  }
}

function eventsOf({ events }: EventOperatorDeps): Events {
  if (!events)
    throw new Fault(
      "analytics_not_configured",
      "Cannot run the command: no analytics engine is configured; set UMPIRE_CLICKHOUSE_URL, or install an embedded engine",
    )
  return events
}

const msOf = (text: string | undefined, otherwise: number): number =>
  text === undefined ? otherwise : Date.parse(text)
