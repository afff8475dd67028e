/** Builds the catalog from the shipped model, the configuration and what the model files say about themselves. */
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { type Catalog, type Model, type Prices, createCatalog } from "../base/catalog.ts"
import { ConfigError, ModelConfig } from "../base/config.ts"
import { ticksPerUnit } from "../base/money.ts"
import { readGguf } from "../engine/llama/gguf.ts"

/** The folder of the shipped model: whatever GGUF stands there is the default, under the name of its file. */
export const shippedModelDirectory = join(import.meta.dirname, "..", "..", "model")

const tokensPerPrice = 1_000_000n
const millisecondsPerPrice = 1_000n

export async function loadCatalog(configured: readonly ModelConfig[]): Promise<Catalog> {
  const [first, ...rest] = [...(await shippedModels()), ...configured]
  if (!first)
    throw new ConfigError("Cannot start without a model: none is shipped and none is configured under models")
  return createCatalog([await toModel(first), ...(await Promise.all(rest.map(toModel)))])
}

async function shippedModels(): Promise<ModelConfig[]> {
  const files = await readdir(shippedModelDirectory).catch(() => [])
  return files
    .filter((name) => name.endsWith(".gguf"))
    .toSorted()
    .map((name) =>
      ModelConfig.parse({
        sku: skuOf(name),
        file: join(shippedModelDirectory, name),
        developer: "umpire",
        description:
          "The small embedded decision model: answers typed questions well for its size; its chat is poor.",
      }),
    )
}

/** A file is named after its model, with the quantization last: umpire-nano-q8_0.gguf is umpire-nano. */
export function skuOf(file: string): string {
  return file
    .replace(/\.gguf$/i, "")
    .replace(/[-.](?:i?q\d\w*|b?f16|f32)$/i, "")
    .toLowerCase()
}

async function toModel(config: ModelConfig): Promise<Model> {
  const facts = await readGguf(config.file).catch((cause: unknown) => {
    throw new ConfigError(
      `Cannot use the model ${config.sku}: ${cause instanceof Error ? cause.message : "its file cannot be read"}`,
      { cause },
    )
  })
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
    file: config.file,
  }
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
