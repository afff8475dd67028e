/** Models at other servers: those that an operator connected by address and key, how each decides, and what its check found. */
import type { Catalog, Model } from "../base/catalog.ts"
import { ModelConfig, type WorkerConfig } from "../base/config-models.ts"
import type { Log } from "../base/log.ts"
import { usdText } from "../base/money.ts"
import { Fault } from "../contract/errors.ts"
import type { ModelCheck } from "../contract/model-check.ts"
import type { CheckState, ConnectedModel } from "../contract/platform/connected-models.ts"
import { type ModelConnector, type ModelDescription, needsCheck } from "../control/connected-models.ts"
import type { DecisionMethod, ScoreEngine } from "../engine/engine.ts"
import type { Decider } from "../engine/remote/decider.ts"
import type { WorkerEngines } from "../gateway/routing/worker.ts"
import { type Change, listenToChanges } from "../store/changes.ts"
import {
  type StoredModel,
  listConnectedModels,
  listModelChecks,
  putModelCheck,
} from "../store/connected-models.ts"
import { type ContentCipher, openText, sealText } from "../store/content/cipher.ts"
import { type Database, type Sql, StoreUnavailable } from "../store/sql.ts"
import { toModel } from "./catalog.ts"
import { calibrated, checkCostMost, checkModel, readCheckRows } from "./model-check.ts"
import { type Routing, remoteEngines } from "./routing.ts"

const keyPlace = (sku: string) => ({ organizationId: "", seqId: `model/${sku}` })
const TEST_TIMEOUT_MS = 120_000
/** A cascade is saved after so long at most, where a server was never asked for decisions before. */
const WHY_UNDECIDED_TIMEOUT_MS = 10_000
/** A change made at another gateway is seen within this time even when its notification is lost. */
const REFRESH_EVERY_MS = 15_000

type RemoteConfig = WorkerConfig & { readonly url: string }

interface RunningCheck {
  state: CheckState
}

interface RemoteModelDeps {
  readonly database: Database
  readonly cipher: ContentCipher
  readonly catalog: Catalog
  readonly log: Log
}

export class RemoteModels implements ModelConnector {
  readonly #deps: RemoteModelDeps
  /** By SKU; those alone that are in the catalog because they are connected. */
  #stored = new Map<string, StoredModel>()
  #checks: ReadonlyMap<string, ModelCheck> = new Map()
  /** By SKU, one of each server. */
  readonly #deciders = new Map<string, Decider[]>()
  readonly #running = new Map<string, RunningCheck>()
  readonly #closing = new AbortController()
  #routing: Pick<Routing, "addModel" | "removeModel"> | null = null
  #refreshing: Promise<void> = Promise.resolve()
  #stop: () => Promise<void> = async () => undefined

  static async open(deps: RemoteModelDeps): Promise<RemoteModels> {
    const models = new RemoteModels(deps)
    const stopListening = await listenToChanges(deps.database, (change) => models.invalidate(change))
    const timer = setInterval(() => models.#refreshSoon(), REFRESH_EVERY_MS).unref()
    models.#stop = async () => {
      clearInterval(timer)
      await stopListening().catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error
      })
    }
    // A store that is away at the start is read once it is back.
    await models.refresh().catch((error: unknown) => models.#failed(error))
    return models
  }

  private constructor(deps: RemoteModelDeps) {
    this.#deps = deps
  }

  /** From here on what is connected is put to work, and what is disconnected is taken out. */
  serveBy(routing: Pick<Routing, "addModel" | "removeModel">): void {
    this.#routing = routing
  }

  invalidate({ table }: Change): void {
    if (table === "connected_models" || table === "model_checks") this.#refreshSoon()
  }

  #refreshSoon(): void {
    void this.refresh().catch((error: unknown) => this.#failed(error))
  }

  #failed(error: unknown): void {
    this.#deps.log.debug({ err: error }, "the connected models could not be read")
  }

  async refresh(): Promise<void> {
    this.#refreshing = this.#refreshing.catch(() => undefined).then(async () => await this.#read())
    await this.#refreshing
  }

  async #read(): Promise<void> {
    const { database, catalog } = this.#deps
    const [rows, checks] = await Promise.all([listConnectedModels(database), listModelChecks(database)])
    this.#checks = checks
    for (const [sku, known] of this.#stored) {
      const now = rows.find(({ id }) => id === known.id)
      if (now?.version === known.version) continue
      this.#stored.delete(sku)
      this.#deciders.delete(sku)
      catalog.remove(sku)
      this.#routing?.removeModel(sku)
    }
    for (const stored of rows) {
      const { sku } = stored
      // What the configuration names is the configuration's.
      if (
        this.#stored.has(sku) ||
        catalog.find(sku) ||
        catalog.virtualModels.some(({ name }) => name === sku)
      )
        continue
      const model = await toModel(catalogEntry(stored.settings))
      this.#stored.set(sku, stored)
      catalog.add(model)
      this.#routing?.addModel(model)
    }
  }

  /** Of connected models, with their keys. */
  workersOf(sku: string): readonly RemoteConfig[] {
    const stored = this.#stored.get(sku)
    if (!stored) return []
    const { settings, sealedKey } = stored
    const { dialect, url, model } = settings
    if (sealedKey === null) return [{ dialect, url, model }]
    const key = openText(this.#deps.cipher, keyPlace(sku), sealedKey)
    if (key === null)
      this.#deps.log.error(
        { model: sku },
        "the key of a connected model cannot be decrypted: is content.keys another?",
      )
    return [{ dialect, url, model, ...(key === null ? {} : { key }) }]
  }

  /** Its answers are calibrated as its check found, where it has one. */
  engines(model: Model, worker: RemoteConfig): WorkerEngines {
    const { decider, ...engines } = remoteEngines(model, worker)
    if (!decider) return engines
    this.#deciders.set(model.sku, [...this.#decidersOf(model.sku), decider])
    const scorer: Pick<ScoreEngine, "score" | "sizeMost"> = {
      sizeMost: (work) => decider.sizeMost?.(work) ?? null,
      score: async (work, call) => {
        const scored = await decider.score(work, call)
        const check = this.#checkOf(model.sku, scored.method)
        if (check === "needless") return scored
        if (check === null) return { ...scored, isUncalibrated: true }
        const margins = calibrated(work.branches, scored.margins, check.calibrations)
        return { ...scored, margins, calibration: `${check.method}@${check.checked_at}` }
      },
    }
    return { ...engines, scorer }
  }

  #decidersOf(sku: string): readonly Decider[] {
    return this.#deciders.get(sku) ?? []
  }

  #checkOf(sku: string, method: DecisionMethod | undefined): ModelCheck | "needless" | null {
    if (method === undefined || !needsCheck(method)) return "needless"
    const check = this.#checks.get(sku)
    return check?.method === method ? check : null
  }

  /** How a model decides, as far as it is known, and whether it needs a check. */
  describe(sku: string): ModelDescription {
    const check = this.#checks.get(sku)
    const decides =
      this.#decidersOf(sku).find(({ methodFound }) => methodFound)?.methodFound ??
      this.#stored.get(sku)?.decides ??
      check?.method ??
      null
    if (decides === null) return { decides, calibrated: null, accuracy: null }
    const found = this.#checkOf(sku, decides)
    const accuracy = found === null || found === "needless" ? null : found.accuracy
    return { decides, calibrated: found !== null, accuracy }
  }

  async whyUndecided(sku: string): Promise<string | null> {
    const signal = AbortSignal.timeout(WHY_UNDECIDED_TIMEOUT_MS)
    const found = await Promise.all(
      this.#decidersOf(sku).map(async (decider) => await decider.method(signal).then(() => null, refusalIn)),
    )
    return found.includes(null) ? null : (found[0] ?? null)
  }

  sealKey(sku: string, key: string): string {
    const { cipher } = this.#deps
    if (cipher.isAvailable) return sealText(cipher, keyPlace(sku), key)
    throw new Fault(
      "invalid_request",
      "Cannot keep the key: the installation has no key to encrypt it with; the operator sets content.keys",
    )
  }

  async probe(given: ConnectedModel, key: string | undefined): Promise<DecisionMethod | null> {
    const { sku, dialect, url, model, context_tokens_max: contextTokensMax } = given
    const facts = { sku, contextTokensMax, quantization: "unknown", file: "", kind: "generation" } as const
    const { decider } = remoteEngines(facts, { dialect, url, model, ...(key === undefined ? {} : { key }) })
    try {
      return (await decider?.method(AbortSignal.timeout(TEST_TIMEOUT_MS))) ?? null
    } finally {
      await decider?.close()
    }
  }

  /** Without a limit of the cost it says what it can cost; with one it begins, and tells how far it is. */
  async check(sku: string, costMaxTicks: bigint | null): Promise<CheckState> {
    const running = this.#running.get(sku)
    if (running && (running.state.state === "running" || costMaxTicks === null)) return running.state
    const { catalog, database } = this.#deps
    const model = catalog.find(sku)
    if (!model) throw refused(`Cannot check ${sku}: the catalog has no such model`)
    const decider = this.#decidersOf(sku).at(-1)
    if (!decider) throw refused(`Cannot check ${sku}: it is no model at a server of its own`)
    const method = await decider.method(AbortSignal.timeout(TEST_TIMEOUT_MS))
    const rows = await readCheckRows()
    const most = checkCostMost(decider, model, rows)
    const told: CheckState = {
      state: "estimate",
      done: 0,
      rows: rows.length,
      cost_usd: usdText(most),
      method,
      accuracy: null,
      left_out: [],
      problem: null,
    }
    if (!needsCheck(method)) return { ...told, state: "needless", cost_usd: "0" }
    if (costMaxTicks === null) return told
    if (most > costMaxTicks)
      throw refused(`Cannot check ${sku}: it can cost USD ${usdText(most)}, more than the limit`)
    // Another may have begun one while this one asked how the model decides.
    const begun = this.#running.get(sku)
    if (begun?.state.state === "running") return begun.state
    const job: RunningCheck = { state: { ...told, state: "running" } }
    this.#running.set(sku, job)
    const { signal } = this.#closing
    let spent = 0n
    const onRow = (costTicks: bigint): void => {
      spent += costTicks
      job.state = { ...job.state, done: job.state.done + 1 }
    }
    checkModel({ scorer: decider, model, method, signal, nowMs: Date.now, onRow }, rows)
      .then(async ({ check, leftOut }) => {
        await putModelCheck(database, sku, check)
        await this.refresh()
        const found = { rows: check.rows, accuracy: check.accuracy, left_out: [...leftOut] }
        job.state = { ...job.state, ...found, state: "done", cost_usd: usdText(spent) }
      })
      .catch((error: unknown) => {
        const problem = error instanceof Fault ? error.message : "an unexpected failure"
        job.state = { ...job.state, state: "failed", problem: `${problem}; USD ${usdText(spent)} was spent` }
      })
    return job.state
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#stop()
    await this.#refreshing.catch(() => undefined)
  }
}

/** Of a server that says that it cannot; one that is away or slow says nothing. */
function refusalIn(error: unknown): string | null {
  if (!(error instanceof Fault) || error.code !== "decisions_unsupported") return null
  return error.message.replace(/^[^:]*: /, "")
}

/** Adds what is connected to a catalog, where no server runs. */
export async function addConnected(sql: Sql, catalog: Catalog): Promise<Catalog> {
  for (const { sku, settings } of await listConnectedModels(sql))
    if (!catalog.find(sku) && !catalog.virtualModels.some(({ name }) => name === sku))
      catalog.add(await toModel(catalogEntry(settings)))
  return catalog
}

const catalogEntry = ({ sku, dialect, context_tokens_max, ...rest }: ConnectedModel): ModelConfig =>
  ModelConfig.parse({
    sku,
    context_tokens_max,
    description: `Runs at a server of its own (${dialect}).`,
    price_m_input_tokens_usd: rest.price_m_input_tokens_usd,
    price_m_input_cache_read_tokens_usd: rest.price_m_input_cache_read_tokens_usd,
    price_m_output_tokens_usd: rest.price_m_output_tokens_usd,
  })

const refused = (sentence: string): Fault => new Fault("invalid_request", sentence)
