/** Breaks the cluster in every way in turn, under load, and says what became of the requests and of the money. */
import { setTimeout as wait } from "node:timers/promises"
import pg from "pg"
import { type Cluster, judgeModel, startCluster, writerModel } from "./cluster.ts"
import { Load, type Spent, type Tally, streamTicksMost } from "./load.ts"

export interface ChaosOptions {
  /** How long each fault lasts. */
  readonly faultMs: number
  /** How long the cluster is left alone after each. */
  readonly calmMs: number
  readonly decisions: number
  readonly streams: number
  /** All of them unless told. */
  readonly faults?: readonly string[]
  readonly onPhase?: (phase: PhaseResult) => void
}

export interface PhaseResult extends Tally {
  readonly name: string
  /** From the fault to the end of the last request that it broke; 0 when none was. */
  readonly recoveredMs: number
}

export interface ChaosResult {
  readonly phases: readonly PhaseResult[]
  readonly money: Money
}

export interface Money {
  readonly expectedTicks: bigint
  readonly chargedTicks: bigint
  /** Ticks that answers said were used and the ledger lacks, or that it has too much. */
  readonly lostTicks: bigint
  readonly doubledTicks: bigint
  readonly chargedSequences: bigint
  /** The balance is the sum of the ledger. */
  readonly isBalanced: boolean
}

type Fault = (cluster: Cluster, forMs: number) => Promise<void>

/** Each comes back when everything works as before. The worker that is hurt is the one that gets most requests. */
export const faults: Readonly<Record<string, Fault>> = {
  none: async (_cluster, forMs) => await wait(forMs),
  kill: async ({ workers: [worker] }, forMs) => {
    worker?.signal("SIGKILL")
    await wait(forMs)
    await worker?.revive()
  },
  freeze: async ({ workers: [worker] }, forMs) => {
    worker?.signal("SIGSTOP")
    await wait(forMs)
    worker?.signal("SIGCONT")
  },
  slow: async (cluster, forMs) => await misbehave(cluster, "slow", forMs),
  refuse: async (cluster, forMs) => await misbehave(cluster, "refuse", forMs),
  corrupt: async (cluster, forMs) => await misbehave(cluster, "corrupt", forMs),
  partition: async (cluster, forMs) => await misbehave(cluster, "partition", forMs),
  database: async (cluster, forMs) => await cluster.restartDatabase(forMs),
  roll: async ({ gateways }) => {
    for (const gateway of gateways) await gateway.roll()
  },
}

async function misbehave(
  { workers: [worker] }: Cluster,
  mode: "slow" | "refuse" | "corrupt" | "partition",
  forMs: number,
): Promise<void> {
  worker?.proxy.set(mode)
  await wait(forMs)
  worker?.proxy.set("pass")
}

export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const cluster = await startCluster()
  try {
    const load = new Load(
      cluster.gateways,
      cluster.workers.map(({ region }) => region),
    )
    await load.start(options.decisions, options.streams)
    const phases: PhaseResult[] = []
    for (const name of options.faults ?? Object.keys(faults)) {
      load.take()
      const startedMs = performance.now()
      await faults[name]?.(cluster, options.faultMs)
      await wait(options.calmMs)
      const tally = load.take()
      const recoveredMs = Math.max(0, Math.round(tally.lastFailureMs - startedMs))
      const phase = { name, ...tally, recoveredMs }
      phases.push(phase)
      options.onPhase?.(phase)
    }
    await load.stop()
    // What gateways do before they end: apply everything that was used.
    await cluster.stopGateways()
    return { phases, money: await countMoney(cluster.databaseUrl, load.spent) }
  } finally {
    await cluster.close()
  }
}

async function countMoney(url: string, spent: Spent): Promise<Money> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const usage = await client.query<{ model: string; ticks: string; sequences: string }>(
      "SELECT model, (-sum(amount_ticks))::text AS ticks, sum(sequences)::text AS sequences FROM ledger WHERE kind = 'usage' GROUP BY model",
    )
    const of = (model: string): bigint => BigInt(usage.rows.find((row) => row.model === model)?.ticks ?? "0")
    const balance = await client.query<{ is_balanced: boolean }>(
      `SELECT bool_and(b.balance_ticks = (SELECT coalesce(sum(l.amount_ticks), 0) FROM ledger l WHERE l.billing_account_id = b.id)) AS is_balanced
       FROM billing_accounts b`,
    )
    const decisions = difference(of(judgeModel), spent.decisionTicks, spent.decisionTicks)
    const streamsMost = spent.streamTicks + BigInt(spent.failedStreams) * streamTicksMost
    const streams = difference(of(writerModel), spent.streamTicks, streamsMost)
    return {
      expectedTicks: spent.decisionTicks + spent.streamTicks,
      chargedTicks: of(judgeModel) + of(writerModel),
      lostTicks: decisions.lost + streams.lost,
      doubledTicks: decisions.doubled + streams.doubled,
      chargedSequences: usage.rows.reduce((sum, row) => sum + BigInt(row.sequences), 0n),
      isBalanced: balance.rows[0]?.is_balanced === true,
    }
  } finally {
    await client.end()
  }
}

function difference(charged: bigint, least: bigint, most: bigint): { lost: bigint; doubled: bigint } {
  return { lost: charged < least ? least - charged : 0n, doubled: charged > most ? charged - most : 0n }
}
