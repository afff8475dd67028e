/** What an operator does with the catalog: lists it, and adds models that stay after a restart. */
import { mkdir, readFile, rename, stat, writeFile } from "node:fs/promises"
import { basename, join, resolve } from "node:path"
import { z } from "zod"
import { type Catalog, type Model, isEncoderFile } from "../base/catalog.ts"
import { ConfigError } from "../base/config.ts"
import { ModelConfig } from "../base/config-models.ts"
import type { Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import { type CatalogOperatorTable, GivenModel, skuForm } from "../contract/operator.ts"
import { readAdapter, readGguf } from "../engine/gguf.ts"

interface CatalogDeps {
  readonly dataDirectory: string
  readonly catalog: () => Promise<Catalog>
  read(config: ModelConfig): Promise<Model>
  /** Puts a model to work in the running server. */
  added(model: Model): void
}

export function catalogHandlers(deps: CatalogDeps): Handlers<CatalogOperatorTable> {
  return {
    listCatalog: async () => (await deps.catalog()).list().map(listed),
    addModel: async ({ body }) => await add(deps, body),
  }
}

const listed = ({ sku, kind, file, contextTokensMax, quantization, description }: Model) => ({
  sku,
  kind,
  purpose: purposeOf(kind, file),
  context: contextTokensMax,
  quantization,
  description,
})

/** As the console says it: every generation model also decides, and an encoder decides only. */
function purposeOf(kind: Model["kind"], file: string): string {
  if (kind === "embedding") return "embeddings"
  return isEncoderFile(file) ? "decisions" : "decisions and text"
}

async function add(deps: CatalogDeps, given: z.infer<typeof GivenModel>): Promise<ReturnType<typeof listed>> {
  const { file, sku = skuOf(basename(given.adapter ?? file)), kind, adapter } = given
  if (!skuForm.test(sku))
    throw new Fault(
      "invalid_request",
      `Cannot add ${basename(adapter ?? file)}: its name cannot be a SKU; choose one with --sku`,
    )
  const catalog = await deps.catalog()
  if (catalog.find(sku) || catalog.virtualModels.some(({ name }) => name === sku))
    throw new Fault(
      "invalid_request",
      `Cannot add ${sku}: the catalog has a model of this name; choose another with --sku`,
    )
  const entry = {
    sku,
    file,
    ...(kind === undefined ? {} : { kind }),
    ...(adapter === undefined ? {} : { adapter }),
  }
  const config = ModelConfig.parse(entry)
  const model = await deps.read(config).catch((error: unknown) => {
    throw new Fault(
      "invalid_request",
      error instanceof ConfigError ? error.message : `Cannot add ${sku}: its file cannot be used`,
    )
  })
  await refuseTruncated(file, readGguf)
  if (adapter !== undefined) await refuseTruncated(adapter, readAdapter)
  const before = await readAdded(deps.dataDirectory)
  await writeAdded(deps.dataDirectory, [...before, entry])
  deps.added(model)
  return listed(model)
}

/** A download that broke off has a good beginning: how long the file must be says what is missing. */
async function refuseTruncated(
  file: string,
  read: (file: string) => Promise<{ readonly fileBytesMin: number }>,
): Promise<void> {
  // That of an encoder says so itself when it is read.
  if (isEncoderFile(file)) return
  const { fileBytesMin } = await read(file)
  const { size } = await stat(file)
  if (size < fileBytesMin)
    throw new Fault(
      "invalid_request",
      `Cannot add ${basename(file)}: it is truncated, ${size} of at least ${fileBytesMin} bytes are there; download it again`,
    )
}

/** A file is named after its model, with the quantization last: small-q8_0.gguf is small. */
export function skuOf(file: string): string {
  return file
    .replace(/\.(?:gguf|onnx)$/i, "")
    .replace(/[-.](?:i?q\d\w*|b?f16|f32)$/i, "")
    .toLowerCase()
}

const Added = z.array(GivenModel.extend({ sku: z.string().min(1) }))
type Added = z.infer<typeof Added>

const listFile = (dataDirectory: string): string => join(dataDirectory, "models", "added.json")

/** The models that were added by command. */
export async function addedModels(dataDirectory: string): Promise<ModelConfig[]> {
  const added = await readAdded(dataDirectory)
  const resolved = (file: string): string => resolve(dataDirectory, "models", file)
  return added.map(({ adapter, ...one }) =>
    ModelConfig.parse({
      ...one,
      file: resolved(one.file),
      ...(adapter === undefined ? {} : { adapter: resolved(adapter) }),
    }),
  )
}

async function readAdded(dataDirectory: string): Promise<Added> {
  let text: string
  try {
    text = await readFile(listFile(dataDirectory), "utf8")
  } catch {
    return []
  }
  const parsed = Added.safeParse(JSON.parse(text))
  if (!parsed.success)
    throw new ConfigError("Cannot read the list of added models in the data directory: it is damaged")
  return parsed.data
}

/** Replaced as a whole: a crash leaves the old list or the new one. */
async function writeAdded(dataDirectory: string, added: Added): Promise<void> {
  const file = listFile(dataDirectory)
  await mkdir(join(dataDirectory, "models"), { recursive: true, mode: 0o700 })
  await writeFile(`${file}.new`, `${JSON.stringify(added, null, 2)}\n`, { mode: 0o600 })
  await rename(`${file}.new`, file)
}
