/** Three regions of real worker processes behind proxies, and two gateways on one PostgreSQL, all on loopback. */
import { type ChildProcess, spawn } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { randomModel } from "../models.ts"
import { type PostgresServer, startPostgres, stopPostgres } from "../postgres.ts"
import { bootstrapKey } from "../server.ts"
import { FaultProxy } from "./fault-proxy.ts"

export const judgeModel = "umpire-decide"
export const writerModel = "writer"
/** Whole ticks a token, so that what was charged can be added up exactly. */
export const inputTokenTicks = 200n
export const outputTokenTicks = 800n
/** Long beyond any stall of the machine: only what a fault holds for good is to be ended by it. */
export const requestTimeoutMs = 120_000

const startTimeoutMs = 110_000
const stopTimeoutMs = 110_000
const command = join(import.meta.dirname, "..", "..", "bin", "umpire.js")

const regions = [
  { id: "paris", country: "FR", latitude: 48.9, longitude: 2.4 },
  { id: "lyon", country: "FR", latitude: 45.8, longitude: 4.8 },
  { id: "oslo", country: "NO", latitude: 59.9, longitude: 10.8 },
]

class WorkerPlace {
  readonly region: string
  readonly proxy: FaultProxy
  readonly #folder: string
  #process: Started

  private constructor(region: string, folder: string, started: Started, proxy: FaultProxy) {
    this.region = region
    this.#folder = folder
    this.#process = started
    this.proxy = proxy
  }

  static async start(region: string, folder: string): Promise<WorkerPlace> {
    const started = await startWorker(folder)
    return new WorkerPlace(region, folder, started, await FaultProxy.start(started.port))
  }

  get pid(): number {
    return this.#process.child.pid ?? 0
  }

  /** Past the proxy. */
  get url(): string {
    return this.#process.url
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal)
  }

  /** After a kill: another process takes its place. */
  async revive(): Promise<void> {
    this.#process = await startWorker(this.#folder)
    this.proxy.aim(this.#process.port)
  }

  async stop(): Promise<void> {
    await this.proxy.close()
    await stopProcess(this.#process.child, "SIGKILL")
  }
}

export class Gateway {
  readonly region: string
  readonly #folder: string
  readonly #environment: Record<string, string>
  #process: Started

  private constructor(region: string, folder: string, environment: Record<string, string>, started: Started) {
    this.region = region
    this.#folder = folder
    this.#environment = environment
    this.#process = started
  }

  static async start(region: string, folder: string, databaseUrl: string): Promise<Gateway> {
    const environment = {
      UMPIRE_DATABASE_URL: databaseUrl,
      UMPIRE_GATEWAY_REGION: region,
      UMPIRE_DATA_DIR: join(folder, `gateway-${region}`),
    }
    return new Gateway(region, folder, environment, await startGateway(folder, environment))
  }

  get url(): string {
    return this.#process.url
  }

  get pid(): number {
    return this.#process.child.pid ?? 0
  }

  get dataDirectory(): string {
    return this.#environment["UMPIRE_DATA_DIR"] ?? ""
  }

  get log(): string {
    return this.#process.errors()
  }

  /** What an upgrade does: asks it to stop, and starts the next one on the same data. */
  async roll(): Promise<void> {
    await stopProcess(this.#process.child, "SIGTERM")
    this.#process = await startGateway(this.#folder, this.#environment)
  }

  async stop(): Promise<number | null> {
    return await stopProcess(this.#process.child, "SIGTERM")
  }
}

export interface Cluster {
  readonly folder: string
  readonly workers: readonly WorkerPlace[]
  readonly gateways: readonly Gateway[]
  readonly databaseUrl: string
  restartDatabase(awayMs: number): Promise<void>
  /** Stops every process of the database where it stands: connections stay open and nothing answers. */
  freezeDatabase(forMs: number): Promise<void>
  /** The gateways first, so that everything used is in the ledger. */
  stopGateways(): Promise<void>
  close(): Promise<void>
}

export interface ClusterOptions {
  /** How long a gateway goes on accepting when it stops; as long as any would, unless told. */
  readonly drainMs?: number | undefined
}

export async function startCluster({ drainMs }: ClusterOptions = {}): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), "umpire-chaos-"))
  // The database runs as another user, who must be able to pass.
  chmodSync(folder, 0o755)
  const databaseFolder = join(folder, "postgres")
  mkdirSync(databaseFolder)
  const state: { database: PostgresServer } = { database: await startPostgres(databaseFolder) }
  writeConfig(folder, "worker.yaml", [], drainMs)
  const workers: WorkerPlace[] = []
  const gateways: Gateway[] = []
  const stopGateways = async (): Promise<void> => {
    await Promise.all(gateways.map(async (gateway) => await gateway.stop()))
  }
  const close = async (): Promise<void> => {
    await stopGateways()
    await Promise.all(workers.map(async (worker) => await worker.stop()))
    await stopPostgres(state.database)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    for (const { id } of regions) workers.push(await WorkerPlace.start(id, folder))
    writeConfig(folder, "gateway.yaml", workers, drainMs)
    for (const id of ["paris", "oslo"]) gateways.push(await Gateway.start(id, folder, state.database.url))
  } catch (error) {
    await close()
    throw error
  }
  return {
    folder,
    workers,
    gateways,
    databaseUrl: state.database.url,
    restartDatabase: async (awayMs) => {
      const { port } = state.database
      await stopPostgres(state.database, "SIGKILL")
      await wait(awayMs)
      rmSync(join(databaseFolder, "cluster", "postmaster.pid"), { force: true })
      state.database = await startPostgres(databaseFolder, { port })
    },
    freezeDatabase: async (forMs) => {
      const frozen = processTree(state.database.pid)
      for (const pid of frozen) signalIfThere(pid, "SIGSTOP")
      await wait(forMs)
      for (const pid of frozen) signalIfThere(pid, "SIGCONT")
    },
    stopGateways,
    close,
  }
}

/** A server process and those that it started for its connections, which are groups of their own. */
function processTree(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim()
  return [pid, ...(children === "" ? [] : children.split(" ").map(Number))]
}

/** A connection's process may have ended by itself. */
function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It is not there any more.
  }
}

function writeConfig(
  folder: string,
  name: string,
  workers: readonly WorkerPlace[],
  drainMs: number | undefined,
): void {
  const model = (sku: string): object => ({
    sku,
    file: randomModel("tiny-f32"),
    price_m_input_tokens_usd: "0.02",
    price_m_input_cache_read_tokens_usd: "0.02",
    price_m_output_tokens_usd: "0.08",
    workers: workers.map(({ region, proxy }) => ({ region, url: proxy.url, dialect: "umpire" })),
  })
  // JSON is YAML.
  const config = {
    server: { request_timeout_ms: requestTimeoutMs, drain_ms: drainMs, port: 0 },
    engine: { threads: 1, kv_memory_mib: 64, cache_memory_mib: 16 },
    limits: { requests_per_minute: 1_000_000, burst: 1_000_000 },
    routing: {
      // Twice what a busy machine stops for: a worker that is cut off is left, one that is only slow is not.
      attempt_timeout_ms: 20_000,
      health_interval_ms: 500,
      health_timeout_ms: 20_000,
      queue_wait_ms: 60_000,
    },
    log: { level: "warn" },
    regions,
    models: [model(judgeModel), model(writerModel)],
  }
  writeFileSync(join(folder, name), JSON.stringify(config))
}

interface Started {
  readonly child: ChildProcess
  readonly url: string
  readonly port: number
  errors(): string
}

async function startWorker(folder: string): Promise<Started> {
  return await start(["worker", "--port", "0", "--config", join(folder, "worker.yaml")], {})
}

async function startGateway(folder: string, environment: Record<string, string>): Promise<Started> {
  return await start(["serve", "--config", join(folder, "gateway.yaml")], {
    ...environment,
    UMPIRE_BOOTSTRAP_KEY: bootstrapKey,
  })
}

const errorsKeptCharacters = 200_000

async function start(args: readonly string[], environment: Record<string, string>): Promise<Started> {
  const clean = Object.entries(process.env).filter(([name]) => !name.startsWith("UMPIRE_"))
  const child = spawn(process.execPath, [command, ...args], {
    env: { ...Object.fromEntries(clean), ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  })
  let output = ""
  let errors = ""
  child.stderr
    .setEncoding("utf8")
    .on("data", (text: string) => (errors = (errors + text).slice(-errorsKeptCharacters)))
  const url = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`not ready in time: ${errors}`)), startTimeoutMs)
    child.once("exit", (code) => reject(new Error(`umpire ${args.join(" ")} ended with ${code}: ${errors}`)))
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text
      const ready = /ready on (http\S+)/.exec(output)?.[1]
      if (ready === undefined) return
      clearTimeout(timer)
      resolve(ready)
    })
  })
  return { child, url, port: Number(new URL(url).port), errors: () => errors }
}

async function stopProcess(child: ChildProcess, signal: "SIGTERM" | "SIGKILL"): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
  return await new Promise((resolve) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), stopTimeoutMs)
    child.once("exit", (code) => {
      clearTimeout(timer)
      resolve(code)
    })
    child.kill(signal)
    // A frozen process hears no polite signal.
    child.kill("SIGCONT")
  })
}
