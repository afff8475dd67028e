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
import { drawTable } from "./table.ts"

const watchEveryMs = 2_000
const clearScreen = "\u001B[H\u001B[2J"
const kibibyte = 1024
const mebibyte = 1024 * 1024

export const status = (open: OpenOperator): Command => ({
  usage: ["umpire status [--watch] [--json]"],
  options: {
    json: flagOption("print JSON"),
    watch: flagOption("go on every 2 seconds until stopped", "w"),
  },
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
  return `${drawGateways(FleetState.parse(fleet))}\n${draw(report)}`
}

function drawGateways({ gateways }: FleetState): string {
  const rows = gateways.map((gateway) => {
    const workers = gateway.models.flatMap((model) => model.workers)
    const sum = (field: "running" | "waiting"): string =>
      String(workers.reduce((total, worker) => total + worker[field], 0))
    return [
      gateway.gateway_id,
      gateway.region,
      gateway.version,
      isSilent(gateway) ? `SILENT for ${gateway.seen_s_ago} s` : gateway.state,
      gateway.url,
      `${workers.filter(({ healthy }) => healthy).length} of ${workers.length}`,
      sum("running"),
      sum("waiting"),
      `$${heldDollars(gateway.leases).toFixed(4)}`,
      `${Math.round(gateway.journal.lag_ms)} ms`,
    ]
  })
  return drawTable(
    [
      "gateway",
      "region",
      "version",
      "state",
      "address",
      "healthy",
      "running",
      "waiting",
      "leases",
      "journal",
    ],
    rows,
  )
}

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
  return `${facts}\n${drawRegions(report)}\n${drawWorkers(report)}\n${drawEngines(report)}`
}

function drawRegions({ regions, models }: GatewayState): string {
  const rows = regions.map(({ id, country }) => {
    const workers = models.flatMap((model) => model.workers).filter((worker) => worker.region === id)
    const healthy = workers.filter((worker) => worker.healthy).length
    return [id, country, `${healthy} of ${workers.length}`]
  })
  return drawTable(["region", "country", "healthy workers"], rows)
}

function healthOf({ healthy, drained }: WorkerState): string {
  if (!healthy) return "DOWN"
  return drained ? "drained" : "up"
}

function drawWorkers({ models }: GatewayState): string {
  const rows = models.flatMap(({ model, workers }) =>
    workers.map((worker) => [
      model,
      worker.id,
      healthOf(worker),
      worker.breaker,
      String(worker.running),
      String(worker.waiting),
      String(worker.outstanding_tokens),
      worker.latency_ms === null ? "-" : `${worker.latency_ms} ms`,
      String(worker.failures),
    ]),
  )
  return drawTable(
    ["model", "worker", "health", "breaker", "running", "waiting", "tokens", "latency", "failures"],
    rows,
  )
}

function drawEngines({ engines }: GatewayState): string {
  const rows = engines.map(({ model, purpose, state, memory_bytes, in_use, idle_s, loads, load_ms }) => [
    model,
    purpose,
    state,
    memory_bytes === 0 ? "-" : `${Math.round(memory_bytes / mebibyte)} MiB`,
    String(in_use),
    `${idle_s} s`,
    String(loads),
    load_ms === null ? "-" : `${load_ms} ms`,
  ])
  return drawTable(
    ["model of this machine", "for", "state", "memory", "in use", "idle", "loads", "last load"],
    rows,
  )
}
