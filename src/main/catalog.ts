/** The catalog: of the shipped models, the configuration and what the model files say about themselves; and what is told of the shipped ones. */
import { existsSync } from "node:fs"
import { basename } from "node:path"
import {
  type Catalog,
  type Model,
  type Prices,
  createCatalog,
  installAdvice,
  isEncoderFile,
  isPackagedModel,
} from "../base/catalog.ts"
import { ModelConfig } from "../base/config-models.ts"
import type { Config } from "../base/config-schema.ts"
import { ConfigError } from "../base/config.ts"
import { includedModelFile } from "../base/included-models.ts"
import { ticksPerUnit } from "../base/money.ts"
import { type VirtualModel, VirtualModelError, checkVirtual } from "../base/virtual-models.ts"
import type { ModelAbout } from "../contract/platform/models.ts"
import { ruleNames, ruleOf, virtualNameForm } from "../contract/platform/virtual-models.ts"
import { factsOf } from "../engine/encoder/model-file.ts"
import { readEncoderFileAbout } from "../engine/encoder/read-model-file.ts"
import { minilm } from "../engine/generate/minilm.ts"
import { type TensorShapes, readAdapter, readGguf } from "../engine/gguf.ts"
import { addedModels } from "./models.ts"

/** The first is the default for decisions. */
const shippedModels = [
  {
    sku: "umpire-decide",
    file: "umpire-decide.onnx",
    description:
      "The embedded decision model: an encoder of 110M parameters that answers typed questions and cannot chat.",
  },
  {
    sku: "umpire-decide-small",
    file: "umpire-decide-small.onnx",
    description:
      "The small embedded decision model of 33M parameters: half the processor time of the one of 110M, less often right.",
  },
  {
    sku: "umpire-decide-multilingual",
    file: "umpire-decide-multilingual.onnx",
    description:
      "The embedded decision model for English and 14 more languages, of 106M parameters: the processor time of the small one.",
  },
  {
    sku: "smollm2-135m-instruct",
    file: "smollm2-135m-instruct.gguf",
    developer: "HuggingFaceTB",
    release_date: "2024-11-01",
    description:
      "SmolLM2 135M Instruct (Apache-2.0), a very small chat model that runs anywhere: fluent, often wrong.",
  },
] as const

/** The first stands for the chat model that ships; the second is what it and umpire-decide were called when they were one. */
const aliases = [
  { name: "umpire-chat", decisions: "smollm2-135m-instruct", generation: "smollm2-135m-instruct" },
  { name: "umpire-nano", decisions: "umpire-decide", generation: "smollm2-135m-instruct" },
] as const

const tokensPerPrice = 1_000_000n
const millisecondsPerPrice = 1_000n

interface CatalogOptions {
  /** Models that were added there by command are in the catalog too. */
  readonly dataDirectory?: string
  /** The shipped model that answers under the name of the default one. */
  readonly decisionModel?: string
}

export async function loadCatalog(
  configured: readonly ModelConfig[],
  { dataDirectory, decisionModel }: CatalogOptions = {},
): Promise<Catalog> {
  const shipped = listShipped(decisionModel)
  const { plain, virtual } = splitVirtual(configured)
  // A configured entry for the default model, for example to run it elsewhere, replaces it.
  const [first, ...rest] = [
    ...shipped.map((model) => withShippedFile(plain.find(({ sku }) => sku === model.sku) ?? model, model)),
    ...plain.filter(({ sku }) => !shipped.some((model) => model.sku === sku)),
    ...(await othersAdded(dataDirectory, [...shipped, ...configured])),
  ]
  if (!first)
    throw new ConfigError("Cannot start without a model: none is shipped and none is configured under models")
  const models = await Promise.all(rest.map(toModel))
  const taken = [first, ...rest].some(({ sku }) => sku === minilm.sku)
  if (!taken && existsSync(minilm.file)) models.push(embeddingModel())
  const catalog = createCatalog([await toModel(first), ...models], aliases, virtual)
  checkConfigured(catalog)
  return catalog
}

/** An entry that says only where an included model runs, or what it costs, is about its file. */
const withShippedFile = (entry: ModelConfig, { file, description }: ModelConfig): ModelConfig =>
  entry.file === undefined && entry.context_tokens_max === undefined
    ? { ...entry, file, description: entry.description || description }
    : entry

/** What a configuration says about the catalog. */
export const catalogOptions = ({
  data_dir,
  engine,
}: Pick<Config, "data_dir" | "engine">): CatalogOptions => ({
  dataDirectory: data_dir,
  decisionModel: engine.decision_model,
})

/** An installation may leave out model files that it does not use, and has those of packages that were installed. */
function listShipped(decisionModel?: string): ModelConfig[] {
  const chosen = shippedModels.find(({ sku }) => sku === decisionModel)
  if (chosen && isPackagedModel(chosen.sku) && includedModelFile(chosen.file) === null)
    throw new ConfigError(
      `Cannot use engine.decision_model ${chosen.sku}: it is not installed; ${installAdvice(chosen.sku)}`,
    )
  return shippedModels
    .map((model, index) => (index === 0 && chosen ? { ...chosen, sku: model.sku } : model))
    .flatMap((model) => {
      const file = includedModelFile(model.file)
      return file === null ? [] : [ModelConfig.parse({ developer: "umpire", ...model, file })]
    })
}

/** Those added by command; one that the configuration names since is the configuration's. */
async function othersAdded(
  dataDirectory: string | undefined,
  known: readonly ModelConfig[],
): Promise<ModelConfig[]> {
  if (dataDirectory === undefined) return []
  return (await addedModels(dataDirectory)).filter(({ sku }) => !known.some((model) => model.sku === sku))
}

function embeddingModel(): Model {
  const { dimensions: _, ...facts } = minilm
  const prices = readPrices(ModelConfig.parse({ sku: facts.sku }))
  return { ...facts, kind: "embedding", prices, public: true, enabled: true }
}

export async function toModel(config: ModelConfig): Promise<Model> {
  if (config.sku === minilm.sku && config.file === undefined && config.context_tokens_max === undefined)
    return { ...embeddingModel(), prices: readPrices(config), public: config.public, enabled: config.enabled }
  const facts = config.file === undefined ? statedFacts(config) : await fileFacts(config, config.file)
  if (config.file !== undefined && config.input_modalities.some((one) => one !== "text"))
    throw new ConfigError(`Cannot use the model ${config.sku}: one with a file reads text only`)
  return {
    sku: config.sku,
    kind: config.kind,
    description: config.description,
    developer: config.developer,
    releaseDate: config.release_date,
    public: config.public,
    enabled: config.enabled,
    prices: readPrices(config),
    contextTokensMax: facts.contextTokensMax,
    quantization: facts.quantization,
    file: config.file ?? "",
    inputModalities: config.input_modalities,
    fetchesUrls: config.fetches_urls,
    ...whatIsKnownOf(config.file),
    ...(facts.version === undefined ? {} : { version: facts.version }),
    ...(config.adapter === undefined ? {} : { adapter: await checkedAdapter(config, config.adapter) }),
  }
}

/** What is known of a model that ships, which is known by its file. */
function whatIsKnownOf(file: string | undefined): Pick<Model, "languages" | "licence"> {
  const name = file === undefined ? "" : basename(file)
  const shipped = shippedModels.find((one) => one.file === name && includedModelFile(name) === file)
  const about = shipped && aboutModels(shipped.sku)(shipped.sku)
  return about ? { languages: about.languages, licence: about.licence } : {}
}

/** The adapter's file, once it is known to fit the model's. */
async function checkedAdapter({ sku, file, kind }: ModelConfig, adapter: string): Promise<string> {
  const refuse = (why: string, cause?: unknown): ConfigError =>
    new ConfigError(`Cannot use the model ${sku}: ${why}`, { cause })
  if (file === undefined || isEncoderFile(file) || kind === "embedding")
    throw refuse("an adapter needs a GGUF file of a model for decisions and chat beside it")
  const [model, lora] = await Promise.all([readGguf(file), readAdapter(adapter)]).catch((cause: unknown) => {
    throw refuse(cause instanceof Error ? cause.message : "its adapter cannot be read", cause)
  })
  if (model.architecture !== lora.architecture)
    throw refuse(
      `its adapter is for models of the architecture ${lora.architecture}, and the file has ${model.architecture}`,
    )
  const unfit = unfitTensor(model.tensors, lora.tensors)
  if (unfit !== null) throw refuse(`its adapter was made for another model: ${unfit} does not fit the file's`)
  return adapter
}

/** A matrix of the model has two of the adapter, which share its sides; that of token embeddings is laid out otherwise. */
function unfitTensor(model: TensorShapes, adapter: TensorShapes): string | null {
  for (const [name, shape] of adapter) {
    const [, base = "", side] = /^(.*)\.lora_([ab])$/.exec(name) ?? []
    const own = model.get(base)
    const axis = side === "a" ? 0 : 1
    if (!own || (base !== "token_embd.weight" && own[axis] !== shape[axis])) return name
  }
  return null
}

type StatedFacts = Pick<Model, "contextTokensMax" | "quantization" | "version">

function statedFacts({ sku, context_tokens_max }: ModelConfig): StatedFacts {
  if (context_tokens_max === undefined)
    throw wrong(sku, installAdvice(sku) ?? "it has neither a file nor context_tokens_max")
  return { contextTokensMax: context_tokens_max, quantization: "unknown" }
}

async function fileFacts(config: ModelConfig, file: string): Promise<StatedFacts> {
  const readEncoder = async (): Promise<StatedFacts> => {
    const read = await readEncoderFileAbout(file)
    return { ...factsOf(read), version: read.version }
  }
  const reading: Promise<StatedFacts> = isEncoderFile(file) ? readEncoder() : readGguf(file)
  return await reading.catch((cause: unknown) => {
    throw new ConfigError(
      `Cannot use the model ${config.sku}: ${cause instanceof Error ? cause.message : "its file cannot be read"}`,
      { cause },
    )
  })
}

function readPrices(config: ModelConfig): Prices {
  const read = (price: string, units: bigint): bigint => {
    try {
      return ticksPerUnit(price, units)
    } catch (cause) {
      throw new ConfigError(
        `Cannot use the model ${config.sku}: ${cause instanceof Error ? cause.message : "bad price"}`,
      )
    }
  }
  return {
    inputTokenTicks: read(config.price_m_input_tokens_usd, tokensPerPrice),
    cachedInputTokenTicks: read(config.price_m_input_cache_read_tokens_usd, tokensPerPrice),
    outputTokenTicks: read(config.price_m_output_tokens_usd, tokensPerPrice),
    millisecondTicks: read(config.price_per_sec_usd, millisecondsPerPrice),
  }
}

interface SplitModels {
  readonly plain: readonly ModelConfig[]
  readonly virtual: readonly VirtualModel[]
}

type Entry = ModelConfig & { readonly workers?: readonly unknown[] }

function splitVirtual(configured: readonly Entry[]): SplitModels {
  return {
    plain: configured.filter((entry) => !isVirtual(entry)),
    virtual: configured.filter(isVirtual).map(toVirtual),
  }
}

const isVirtual = (entry: ModelConfig): boolean => ruleNames.some((name) => entry[name] !== undefined)

function toVirtual(entry: Entry): VirtualModel {
  const { sku, description, enabled } = entry
  const rule = ruleOf(entry)
  if (!rule) throw wrong(sku, `it has more than one of ${ruleNames.join(", ")}`)
  if (
    entry.file !== undefined ||
    entry.adapter !== undefined ||
    entry.context_tokens_max !== undefined ||
    entry.workers?.length
  )
    throw wrong(sku, "a virtual model has no file, context_tokens_max or workers; its members have")
  if (!virtualNameForm.test(sku)) throw wrong(sku, "its name may have letters, digits and . _ - / : only")
  return { name: sku, description, enabled, rule }
}

/** Cycles, missing members, and names that are taken. */
function checkConfigured(catalog: Catalog): void {
  const { virtualModels } = catalog
  const find = findIn(catalog)
  for (const [at, virtual] of virtualModels.entries()) {
    const { name } = virtual
    if (catalog.find(name) || virtualModels.findIndex((other) => other.name === name) !== at)
      throw wrong(name, "another model has this name")
    try {
      checkVirtual(find, virtual)
    } catch (error) {
      if (!(error instanceof VirtualModelError)) throw error
      throw wrong(name, error.message)
    }
  }
}

const findIn = (catalog: Catalog) => (name: string) =>
  catalog.find(name) ?? catalog.virtualModels.find((virtual) => virtual.name === name) ?? null

const wrong = (name: string, why: string): ConfigError =>
  new ConfigError(`Cannot use the model ${name}: ${why}`)

/** The figures of the shipped models are those of model/MODEL_CARD.md and docs/speed.md. */
const licence = "Apache-2.0"

/** Shares of right answers on kept-back rows, and the processor time of three questions about 105 tokens. */
const measured = (values: {
  readonly sets?: string
  readonly predicate: string
  readonly choice: string
  readonly score: string
  readonly time?: string
}): ModelAbout["measured"] => {
  const figures: [name: string, value: string | undefined][] = [
    ["Right on 18 public sets", values.sets],
    ["Right on yes or no", values.predicate],
    ["Right on choices", values.choice],
    ["Right on scales", values.score],
    ["Processor time of 3 questions", values.time],
  ]
  return figures.flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }]))
}

const known: Readonly<Record<string, ModelAbout>> = {
  "umpire-decide": {
    parameters: "110M",
    file_bytes: 115_313_108,
    languages: ["en"],
    licence,
    measured: measured({ sets: "80%", predicate: "83%", choice: "70%", score: "72%", time: "127 ms" }),
  },
  "umpire-decide-small": {
    parameters: "33M",
    file_bytes: 35_419_765,
    languages: ["en"],
    licence,
    measured: measured({ sets: "78%", predicate: "78%", choice: "60%", score: "71%", time: "72 ms" }),
  },
  "umpire-decide-multilingual": {
    parameters: "106M",
    file_bytes: 74_305_288,
    languages: "en de fr es pt it nl pl tr ru ar hi ja ko zh".split(" "),
    licence,
    measured: measured({ predicate: "75%", choice: "55%", score: "66%" }),
  },
  "smollm2-135m-instruct": {
    parameters: "135M",
    file_bytes: 98_362_432,
    languages: ["en"],
    licence,
    measured: [],
  },
}

/** Of the default model it is that of the one that answers under its name. */
export const aboutModels =
  (decisionModel = "umpire-decide") =>
  (sku: string): ModelAbout | null =>
    known[sku === "umpire-decide" ? decisionModel : sku] ?? null
