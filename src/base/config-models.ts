/** The parts of the configuration that describe models, the workers that run them, and regions. */
import { z } from "zod"
import { inputModalities } from "./catalog.ts"
import { remoteDialects } from "../contract/model-check.ts"
import { optionalRules } from "../contract/platform/virtual-models.ts"

/** Where a secret comes from. It never stands in the file itself. */
export const SecretReference = z.union([
  z.strictObject({ env: z.string().min(1) }),
  z.strictObject({ file: z.string().min(1) }),
])

/** A secret as the file may give it (a reference) or as the environment gives it (the value). */
export const secret = (description: string) =>
  z
    .union([z.string().min(1), SecretReference])
    .optional()
    .describe(description)

/** Decimal USD, quoted in YAML or not. */
const Price = z.union([z.string(), z.number().nonnegative()]).transform(String)

/** How a worker that is reached by URL is spoken to. */
const workerDialects = [...remoteDialects, "umpire"] as const

export const WorkerConfig = z.strictObject({
  region: z.string().min(1).optional().describe("Where it stands; without it, where the gateway stands."),
  url: z
    .url()
    .optional()
    .describe("Address of the server that runs the model; without it, a process of this machine does."),
  dialect: z.enum(workerDialects).default("openai").describe("How the server is spoken to."),
  key: SecretReference.optional().describe("The bearer value that the server wants."),
  model: z.string().min(1).optional().describe("What the server calls the model; without it, the SKU."),
  concurrency_max: z
    .number()
    .int()
    .min(1)
    .max(100_000)
    .optional()
    .describe("Requests that it works on at the same time."),
})
/** With its key read. */
export type WorkerConfig = Omit<z.infer<typeof WorkerConfig>, "key"> & { readonly key?: string }

export const ModelConfig = z.strictObject({
  sku: z.string().trim().min(1).max(256).describe("The name that requests use."),
  file: z
    .string()
    .min(1)
    .optional()
    .describe(
      "A GGUF file, or the ONNX file of an encoder, relative to the configuration file; not needed for an included model, or one that only runs at workers.",
    ),
  adapter: z
    .string()
    .min(1)
    .optional()
    .describe("A LoRA adapter of the GGUF file, itself a GGUF file, relative to the configuration file."),
  context_tokens_max: z
    .number()
    .int()
    .min(1)
    .max(100_000_000)
    .optional()
    .describe("The context of a model without a file."),
  input_modalities: z
    .array(z.enum(inputModalities))
    .max(inputModalities.length)
    .default(["text"])
    .describe(
      "What its workers read: text, image, file; what they do not is refused. A model with a file reads text.",
    ),
  fetches_urls: z
    .boolean()
    .default(false)
    .describe(
      "Images and files may be https addresses, which its workers fetch; otherwise they come in the request.",
    ),
  kind: z.enum(["generation", "embedding"]).default("generation").describe("What the model makes."),
  description: z.string().max(1000).default("").describe("One sentence for people who choose a model."),
  developer: z.string().nullable().default(null).describe("Who made it."),
  release_date: z.iso.date().nullable().default(null).describe("When it was published, YYYY-MM-DD."),
  public: z.boolean().default(true).describe("Every organization may use it without asking."),
  enabled: z.boolean().default(true).describe("Whether requests for it are served."),
  price_m_input_tokens_usd: Price.default("0.02").describe("USD per million input tokens."),
  price_m_input_cache_read_tokens_usd: Price.default("0.01").describe("USD per million cached input tokens."),
  price_m_output_tokens_usd: Price.default("0.08").describe("USD per million output tokens."),
  price_per_sec_usd: Price.default("0").describe("USD per second of model execution."),
  workers: z
    .array(WorkerConfig)
    .max(1000)
    .default([])
    .describe("Where the model runs; without any, in a process of this machine."),
  ...optionalRules,
})
export type ModelConfig = Omit<z.infer<typeof ModelConfig>, "workers">

export const RegionConfig = z.strictObject({
  id: z
    .string()
    .regex(/^[\w.-]{1,64}$/)
    .describe("The name that routing policies use."),
  country: z
    .string()
    .regex(/^[A-Z]{2}$/)
    .describe("ISO 3166-1, two letters."),
  latitude: z.number().min(-90).max(90).describe("Degrees, north positive."),
  longitude: z.number().min(-180).max(180).describe("Degrees, east positive."),
})
export type RegionConfig = z.infer<typeof RegionConfig>
