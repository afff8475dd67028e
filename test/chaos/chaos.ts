/** Breaks the cluster in every way in turn, under load, and says what became of the requests and of the money. */
import { setTimeout as wait } from "node:timers/promises"
import { type Cluster, type ClusterOptions, startCluster } from "./cluster.ts"
import { Load, type Tally } from "./load.ts"
import { type Money, countMoney, rememberRecords } from "./money.ts"

interface ChaosOptions extends ClusterOptions {
  /** How long each fault lasts. */
  readonly faultMs: number
  /** How long the cluster is left alone after each. */
  readonly calmMs: number
  readonly decisions: number
  readonly streams: number
  /** How long each client pauses between its requests. */
  readonly thinkMs?: number
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

type Fault = (cluster: Cluster, forMs: number) => Promise<void>

/** Each comes back when everything works as before. The worker that is hurt is the one that gets most requests. */
const faults: Readonly<Record<string, Fault>> = {
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
  stall: async (cluster, forMs) => await cluster.freezeDatabase(forMs),
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
  const cluster = await startCluster(options)
  try {
    const load = new Load(
      cluster.gateways,
      cluster.workers.map(({ region }) => region),
      options.thinkMs,
    )
    await load.start(options.decisions, options.streams)
    const phases: PhaseResult[] = []
    const records: Parameters<typeof rememberRecords>[0] = new Map()
    for (const name of options.faults ?? Object.keys(faults)) {
      load.take()
      const startedMs = performance.now()
      await faults[name]?.(cluster, options.faultMs)
      await wait(options.calmMs)
      // What this fault broke is not counted against the next.
      await load.untilEnded()
      const tally = load.take()
      const recoveredMs = Math.max(0, Math.round(tally.lastFailureMs - startedMs))
      const phase = { name, ...tally, recoveredMs }
      phases.push(phase)
      options.onPhase?.(phase)
      await rememberRecords(records, cluster.gateways)
    }
    await load.stop()
    // What gateways do before they end: apply everything that was used.
    await cluster.stopGateways()
    await rememberRecords(records, cluster.gateways)
    const { receipts } = load
    return { phases, money: await countMoney(cluster.databaseUrl, [...records.values()], receipts) }
  } finally {
    await cluster.close()
  }
}
