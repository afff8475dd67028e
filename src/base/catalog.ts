/** The model catalog: every SKU that requests can name, with its prices and what its file says about it; and the regions where they run. */
import type { Ticks } from "./money.ts"
import type { VirtualModel } from "./virtual-models.ts"

type ModelKind = "generation" | "embedding"

export const inputModalities = ["text", "image", "file"] as const
type InputModality = (typeof inputModalities)[number]

export interface Prices {
  readonly inputTokenTicks: Ticks
  readonly cachedInputTokenTicks: Ticks
  readonly outputTokenTicks: Ticks
  readonly millisecondTicks: Ticks
}

export interface Model {
  readonly sku: string
  readonly kind: ModelKind
  readonly description: string
  readonly developer: string | null
  readonly releaseDate: string | null
  readonly public: boolean
  readonly enabled: boolean
  readonly prices: Prices
  readonly contextTokensMax: number
  readonly quantization: string
  /** The GGUF or ONNX file of a local model; empty for one that only runs at workers. */
  readonly file: string
  /** What its engine tells of itself with each reading, where the file says so; what was taught on one version fits no other. */
  readonly version?: string
  /** The languages that it has learnt, by their tags; absent: not known. */
  readonly languages?: readonly string[]
  /** Absent: not known. */
  readonly licence?: string
  /** What it reads; absent: text. */
  readonly inputModalities?: readonly InputModality[]
  /** Its workers fetch images and files by their addresses. */
  readonly fetchesUrls?: boolean
  /** The LoRA adapter of a local GGUF model; absent: the model as it is. */
  readonly adapter?: string
}

/** ONNX files are encoders: they decide and give vectors, or embed, and cannot generate. */
export const isEncoderFile = (file: string): boolean => /\.onnx$/i.test(file)

/** What a request wants of a model. */
type ModelTask = "decisions" | "generation"

/** A name that is not a model's own: which model it stands for depends on the task. */
interface ModelAlias extends Readonly<Record<ModelTask, string>> {
  readonly name: string
}

export interface Catalog {
  /** By SKU, else by alias; without a task, an alias is the model for decisions. */
  find(sku: string, task?: ModelTask): Model | null
  list(): readonly Model[]
  /** What requests are answered by on a fresh installation. */
  readonly fallback: Model
  /** Those that the configuration has for every organization. */
  readonly virtualModels: readonly VirtualModel[]
  /** Throws RangeError when the SKU is taken. */
  add(model: Model): void
  remove(sku: string): void
}

export function createCatalog(
  models: readonly [Model, ...Model[]],
  aliases: readonly ModelAlias[] = [],
  virtualModels: readonly VirtualModel[] = [],
): Catalog {
  const bySku = new Map<string, Model>()
  const add = (model: Model): void => {
    if (bySku.has(model.sku) || virtualModels.some(({ name }) => name === model.sku))
      throw new RangeError(`Cannot use the catalog: the model ${model.sku} is listed twice`)
    bySku.set(model.sku, model)
  }
  for (const model of models) add(model)
  const find = (sku: string, task: ModelTask = "decisions"): Model | null => {
    const alias = aliases.find(({ name }) => name === sku)
    return bySku.get(sku) ?? (alias ? (bySku.get(alias[task]) ?? null) : null)
  }
  return {
    find,
    list: () => [...bySku.values()],
    fallback: models[0],
    virtualModels,
    add,
    remove: (sku) => void bySku.delete(sku),
  }
}

/** A named place where inference can run. */
export interface Region {
  readonly id: string
  /** ISO 3166-1, two letters. */
  readonly country: string
  readonly latitude: number
  readonly longitude: number
}

/** What an installation has that names none. Its country is no country's: ZZ is set aside for private use. */
export const localRegion: Region = { id: "local", country: "ZZ", latitude: 0, longitude: 0 }

/** Those an organization sees; null means all. */
export function visibleRegions(
  regions: readonly Region[],
  visible: readonly string[] | null,
): readonly Region[] {
  return visible === null ? regions : regions.filter(({ id }) => visible.includes(id))
}

/** Models that come with Umpire as npm packages of their own, under their names. */
const packagedModels: readonly string[] = ["umpire-decide-multilingual"]

export const isPackagedModel = (sku: string): boolean => packagedModels.includes(sku)

/** How to get a model that is not there; null of one that is no package. */
export const installAdvice = (sku: string): string | null =>
  isPackagedModel(sku) ? `npm install ${sku} where umpire is installed adds it` : null
