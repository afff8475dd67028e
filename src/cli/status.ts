/** `umpire status`: how the running server stands: regions, workers, queues, breakers, leases and journal. */
import { z } from "zod"
import type { CliContext, Command } from "./command.ts"
import type { Operate } from "./operator.ts"
import { drawTable } from "./table.ts"

const Worker = z.object({
  id: z.string(),
  region: z.string(),
  healthy: z.boolean(),
  breaker: z.string(),
  running: z.number(),
  waiting: z.number(),
  outstanding_tokens: z.number(),
  latency_ms: z.number().nullable(),
  failures: z.number(),
})

const Report = z.object({
  version: z.string(),
  url: z.string(),
  state: z.string(),
  region: z.string(),
  uptime_s: z.number(),
  memory_bytes: z.number(),
  regions: z.array(z.object({ id: z.string(), country: z.string() })),
  models: z.array(z.object({ model: z.string(), workers: z.array(Worker) })),
  gateway_id: z.string(),
  journal: z.object({ bytes: z.number(), lag_ms: z.number() }),
  leases: z.array(z.object({ billing_account_id: z.string(), held_ticks: z.string() })),
})
type Report = z.infer<typeof Report>

const kibibyte = 1024
const mebibyte = 1024 * 1024
const ticksPerDollar = 1e10

export const status = (operator: (context: CliContext) => Operate): Command => ({
  usage: ["umpire status [--json]"],
  options: { json: { type: "boolean" } },
  optionHelp: { json: "print JSON" },
  run: async (context) => {
    const answer = await operator(context)("status", null)
    const text = context.values["json"] === true ? `${JSON.stringify(answer)}\n` : draw(Report.parse(answer))
    context.stdout.write(text)
    return 0
  },
})

function draw(report: Report): string {
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
      ...leases.map(({ billing_account_id, held_ticks }) => [
        "lease",
        `${billing_account_id} holds $${(Number(held_ticks) / ticksPerDollar).toFixed(4)}`,
      ]),
    ],
  )
  return `${facts}\n${drawRegions(report)}\n${drawWorkers(report)}`
}

function drawRegions({ regions, models }: Report): string {
  const rows = regions.map(({ id, country }) => {
    const workers = models.flatMap((model) => model.workers).filter((worker) => worker.region === id)
    const healthy = workers.filter((worker) => worker.healthy).length
    return [id, country, `${healthy} of ${workers.length}`]
  })
  return drawTable(["region", "country", "healthy workers"], rows)
}

function drawWorkers({ models }: Report): string {
  const rows = models.flatMap(({ model, workers }) =>
    workers.map((worker) => [
      model,
      worker.id,
      worker.healthy ? "up" : "DOWN",
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
