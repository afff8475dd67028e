/** `umpire status`: how the installation stands: its gateways; and of the running one regions, workers, queues, breakers, leases, journal. */
import { setTimeout as wait } from "node:timers/promises"
import {
  FleetState,
  type GatewayState,
  type WorkerState,
  heldDollars,
  isSilent,
} from "../contract/fleet-report.ts"
import type { OperatorClient } from "../contract/client.ts"
import type { OpenOperator } from "./actions.ts"
import { type Command, flagOption } from "./command.ts"
import { columns, drawTable } from "./table.ts"

const watchEveryMs = 2_000
const clearScreen = "\u001B[H\u001B[2J"
const kibibyte = 1024
const mebibyte = 1024 * 1024

export const status = (open: OpenOperator): Command => ({
  usage: ["umpire status [--watch] [--json]"],
  options: { json: flagOption("print JSON"), watch: flagOption("go on every 2 seconds until stopped", "w") },
  run: async (context) => {
    const { stdout, values } = context
    const { client } = await open(context)
    const isWatched = values["watch"] === true
    for (;;) {
      const text = await read(client, values["json"] === true)
      stdout.write(isWatched && stdout.isTTY ? clearScreen + text : text)
      if (!isWatched) return 0
      await wait(watchEveryMs)
    }
  },
})

async function read(client: OperatorClient, isJson: boolean): Promise<string> {
  const report = await client.getStatus()
  const fleet = await client.getFleet()
  if (isJson) return `${JSON.stringify({ ...report, fleet })}\n`
  // Gateways of other versions may not tell everything.
  return `${drawGateways(FleetState.parse(fleet).gateways)}\n${draw(report)}`
}

type ShownGateway = FleetState["gateways"][number]

const workersOf = ({ models }: Pick<GatewayState, "models">): WorkerState[] =>
  models.flatMap(({ workers }) => workers)
const sumOf = (gateway: ShownGateway, field: "running" | "waiting"): string =>
  String(workersOf(gateway).reduce((total, worker) => total + worker[field], 0))
const healthyOf = (workers: readonly WorkerState[]): string =>
  `${workers.filter(({ healthy }) => healthy).length} of ${workers.length}`

const drawGateways = columns<ShownGateway>({
  gateway: ({ gateway_id }) => gateway_id,
  region: ({ region }) => region,
  version: ({ version }) => version,
  state: (gateway) => (isSilent(gateway) ? `SILENT for ${gateway.seen_s_ago} s` : gateway.state),
  address: ({ url }) => url,
  healthy: (gateway) => healthyOf(workersOf(gateway)),
  running: (gateway) => sumOf(gateway, "running"),
  waiting: (gateway) => sumOf(gateway, "waiting"),
  leases: ({ leases }) => `$${heldDollars(leases).toFixed(4)}`,
  journal: ({ journal }) => `${Math.round(journal.lag_ms)} ms`,
})

function draw(report: GatewayState): string {
  const { version, url, state, region, uptime_s, memory_bytes, gateway_id, journal, leases } = report
  const facts = drawTable(
    ["gateway", gateway_id],
    [
      ["version", version],
      ["address", url],
      ["state", `${state}, up ${uptime_s} s, ${Math.round(memory_bytes / mebibyte)} MiB`],
      ["region", region],
      [
        "journal",
        `${Math.round(journal.bytes / kibibyte)} KiB, ${Math.round(journal.lag_ms)} ms behind in the ledger`,
      ],
      ...leases.map((lease) => [
        "lease",
        `${lease.billing_account_id} holds $${heldDollars([lease]).toFixed(4)}`,
      ]),
    ],
  )
  const workers = report.models.flatMap((one) =>
    one.workers.map((worker) => ({ ...worker, model: one.model })),
  )
  return `${facts}\n${drawRegions(report)}\n${drawWorkers(workers)}\n${drawEngines(report.engines)}`
}

function drawRegions(report: GatewayState): string {
  const workers = workersOf(report)
  return columns<GatewayState["regions"][number]>({
    region: ({ id }) => id,
    country: ({ country }) => country,
    "healthy workers": ({ id }) => healthyOf(workers.filter(({ region }) => region === id)),
  })(report.regions)
}

function healthOf({ healthy, drained }: WorkerState): string {
  if (!healthy) return "DOWN"
  return drained ? "drained" : "up"
}

const drawWorkers = columns<WorkerState & { readonly model: string }>({
  model: ({ model }) => model,
  worker: ({ id }) => id,
  health: healthOf,
  breaker: ({ breaker }) => breaker,
  running: ({ running }) => String(running),
  waiting: ({ waiting }) => String(waiting),
  tokens: ({ outstanding_tokens }) => String(outstanding_tokens),
  latency: ({ latency_ms }) => (latency_ms === null ? "-" : `${latency_ms} ms`),
  failures: ({ failures }) => String(failures),
})

const drawEngines = columns<GatewayState["engines"][number]>({
  "model of this machine": ({ model }) => model,
  for: ({ purpose }) => purpose,
  state: ({ state }) => state,
  memory: ({ memory_bytes: bytes }) => (bytes === 0 ? "-" : `${Math.round(bytes / mebibyte)} MiB`),
  "in use": ({ in_use }) => String(in_use),
  idle: ({ idle_s }) => `${idle_s} s`,
  loads: ({ loads }) => String(loads),
  "last load": ({ load_ms }) => (load_ms === null ? "-" : `${load_ms} ms`),
})
