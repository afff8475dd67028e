/** What the service says of itself: the handlers of its health and documents, and the report that `umpire status` prints. */
import type { Region } from "../base/catalog.ts"
import type { Clock } from "../base/clock.ts"
import type { Config } from "../base/config-schema.ts"
import { ConstantJson, type Handlers } from "../contract/endpoint.ts"
import type { GatewayState } from "../contract/fleet-report.ts"
import { openapi } from "../contract/openapi.ts"
import { questionSetSchema } from "../contract/question-sets/sets.ts"
import { type Table, table } from "../contract/table.ts"
import type { LocalEngines } from "../engine/local-engines.ts"
import type { Router } from "../gateway/routing/router.ts"
import { etagOf } from "../server/pages.ts"
import type { Money } from "./money.ts"
import { version } from "./package-files.ts"
import type { Readiness } from "./readiness.ts"

type ServiceHandlers = Pick<
  Handlers<Table>,
  "getHealth" | "getReadiness" | "getOpenapi" | "getQuestionSetSchema"
>

export function serviceHandlers(readiness: Readiness): ServiceHandlers {
  // Made when they are first asked for: a start would take half a second longer.
  let document: ConstantJson | undefined
  let schema: ConstantJson | undefined
  const facts = { title: "Umpire", version, description: "Typed decisions and inference, self-hosted." }
  return {
    getHealth: async () => ({ status: "ok" }),
    getReadiness: async () => await readiness.check(),
    getOpenapi: async () => (document ??= constantJson(openapi(table, facts))),
    getQuestionSetSchema: async () => (schema ??= constantJson(questionSetSchema())),
  }
}

function constantJson(value: object): ConstantJson {
  const bytes = Buffer.from(JSON.stringify(value))
  return new ConstantJson(bytes, etagOf(bytes))
}

interface StatusNeeds {
  readonly router: Pick<Router, "report">
  readonly engines: Pick<LocalEngines, "report">
  readonly money: Pick<Money, "report">
  readonly regions: readonly Region[]
  readonly config: Pick<Config, "gateway">
  readonly state: { readonly stopping: boolean; readonly url: string }
  readonly clock: Clock
}

const millisecondsPerSecond = 1_000

export function createStatus(needs: StatusNeeds): () => GatewayState {
  const startedMs = needs.clock.monotonicMs()
  return () => reportOf(needs, startedMs)
}

function reportOf(
  { router, engines, money, regions, config, state, clock }: StatusNeeds,
  startedMs: number,
): GatewayState {
  const { gatewayId, journalBytes, lagMs, leases } = money.report()
  return {
    version,
    url: state.url,
    state: state.stopping ? "stopping" : "serving",
    region: config.gateway.region ?? regions[0]?.id ?? "",
    uptime_s: Math.round((clock.monotonicMs() - startedMs) / millisecondsPerSecond),
    memory_bytes: process.memoryUsage.rss(),
    regions,
    models: router.report(),
    engines: engines.report(),
    gateway_id: gatewayId,
    journal: { bytes: journalBytes, lag_ms: lagMs },
    leases: leases.map(({ accountId, heldTicks }) => ({
      billing_account_id: accountId,
      held_ticks: String(heldTicks),
    })),
  }
}
