/** Gateways, regions, and models in memory, as tables of the fleet page. */
import type { ReactNode } from "react"
import {
  type EngineReport,
  type FleetState,
  heldDollars,
  isSilent,
} from "../../../src/contract/fleet-report.ts"
import { count, dollarsTo, milliseconds } from "../parts/format.ts"
import { Badge } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { t } from "../i18n/translate.ts"

type Gateway = FleetState["gateways"][number]

const kibibyte = 1024
const mebibyte = 1024 * 1024
const bytes = (value: number): string =>
  value < mebibyte ? `${count(value / kibibyte)} KiB` : `${count(value / mebibyte)} MiB`
const seconds = (value: number): string => milliseconds(value * 1000)

export function GatewayTable({ state: { gateways } }: { state: FleetState }): ReactNode {
  return (
    <Table
      label={t("Gateways")}
      rows={gateways}
      rowKey={({ gateway_id }) => gateway_id}
      columns={[
        {
          name: t("Gateway"),
          cell: ({ gateway_id, url }) => (
            <>
              <span className="font-mono text-xs">{gateway_id}</span>
              <span className="text-soft block text-xs">{url}</span>
            </>
          ),
        },
        { name: t("State"), cell: (gateway) => <State gateway={gateway} /> },
        { name: t("Region"), cell: ({ region }) => region },
        { name: t("Version"), cell: ({ version }) => version },
        { name: t("Up for"), align: "right", cell: ({ uptime_s }) => seconds(uptime_s) },
        { name: t("Memory"), align: "right", cell: ({ memory_bytes }) => bytes(memory_bytes) },
        {
          name: t("Workers"),
          align: "right",
          cell: ({ models }) => {
            const workers = models.flatMap((model) => model.workers)
            return t("{healthy} of {workers}", {
              healthy: workers.filter(({ healthy }) => healthy).length,
              workers: workers.length,
            })
          },
        },
        {
          name: t("Leases"),
          align: "right",
          cell: ({ leases }) => (
            <span title={t("{leases} billing accounts", { leases: leases.length })}>
              {dollarsTo(heldDollars(leases), 4)}
            </span>
          ),
        },
        {
          name: t("Journal"),
          align: "right",
          cell: ({ journal }) =>
            t("{bytes}, {lagMs} behind", {
              bytes: bytes(journal.bytes),
              lagMs: milliseconds(journal.lag_ms),
            }),
        },
      ]}
    />
  )
}

function State({ gateway }: { gateway: Gateway }): ReactNode {
  if (isSilent(gateway))
    return <Badge tone="bad">{t("Silent for {seconds}", { seconds: seconds(gateway.seen_s_ago) })}</Badge>
  return gateway.state === "serving" ? (
    <Badge tone="good">{t("Serving")}</Badge>
  ) : (
    <Badge>{gateway.state}</Badge>
  )
}

const engineTones = { loaded: "good", loading: "info", unloading: "info", unloaded: "plain" } as const

interface EngineRow extends EngineReport {
  readonly gateway: string
}

export function EngineTable({ state: { gateways } }: { state: FleetState }): ReactNode {
  const rows: EngineRow[] = gateways
    .filter((gateway) => !isSilent(gateway))
    .flatMap(({ gateway_id: gateway, engines }) => engines.map((engine) => ({ ...engine, gateway })))
  if (rows.length === 0)
    return <p className="panel text-soft p-4">{t("No gateway has a model in its own machine's memory.")}</p>
  return (
    <Table
      label={t("Models in memory")}
      rows={rows}
      rowKey={({ gateway, model, purpose }) => `${gateway} ${model} ${purpose}`}
      columns={[
        {
          name: t("Model"),
          cell: ({ model, gateway }) => (
            <>
              <span className="font-medium">{model}</span>
              <span className="text-soft block font-mono text-xs">{gateway}</span>
            </>
          ),
        },
        { name: t("For"), cell: ({ purpose }) => purpose },
        {
          name: t("State"),
          cell: ({ state }) => <Badge tone={engineTones[state]}>{state}</Badge>,
        },
        {
          name: t("Memory"),
          align: "right",
          cell: ({ memory_bytes }) => (memory_bytes === 0 ? "–" : bytes(memory_bytes)),
        },
        { name: t("In use"), align: "right", cell: ({ in_use }) => count(in_use) },
        { name: t("Idle for"), align: "right", cell: ({ idle_s }) => seconds(idle_s) },
        { name: t("Loads"), align: "right", cell: ({ loads }) => count(loads) },
        {
          name: t("Last load"),
          align: "right",
          cell: ({ load_ms }) => (load_ms === null ? "–" : milliseconds(load_ms)),
        },
      ]}
    />
  )
}

interface RegionRow {
  readonly id: string
  readonly country: string
  readonly gateways: number
  readonly workers: number
  readonly healthy: number
}

export function RegionTable({ state: { gateways } }: { state: FleetState }): ReactNode {
  const regions = new Map(gateways.flatMap((gateway) => gateway.regions).map((region) => [region.id, region]))
  const live = gateways.filter((gateway) => !isSilent(gateway))
  const rows: RegionRow[] = [...regions.values()].map(({ id, country }) => {
    const workers = live
      .flatMap(({ models }) => models.flatMap((model) => model.workers))
      .filter(({ region }) => region === id)
    const ids = (list: typeof workers): number => new Set(list.map((worker) => worker.id)).size
    return {
      id,
      country,
      gateways: live.filter(({ region }) => region === id).length,
      workers: ids(workers),
      healthy: ids(workers.filter(({ healthy }) => healthy)),
    }
  })
  return (
    <Table
      label={t("Regions")}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        { name: t("Region"), cell: ({ id }) => <span className="font-medium">{id}</span> },
        { name: t("Country"), cell: ({ country }) => country },
        { name: t("Gateways"), align: "right", cell: (row) => count(row.gateways) },
        {
          name: t("Healthy workers"),
          align: "right",
          cell: (row) => t("{healthy} of {workers}", { healthy: row.healthy, workers: row.workers }),
        },
      ]}
    />
  )
}
