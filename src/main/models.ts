/** What an operator does with the catalog: lists it, and adds models that stay after a restart. */
import { mkdir, readFile, rename, stat, writeFile } from "node:fs/promises"
import { basename, join, resolve } from "node:path"
import { z } from "zod"
import { type Catalog, type Model, isEncoderFile } from "../base/catalog.ts"
import { ConfigError } from "../base/config.ts"
import { ticksOfUsd } from "../base/money.ts"
import { connectModel } from "../control/connected-models.ts"
import { findFirstOrganization } from "../store/organizations.ts"
import { ModelConfig } from "../base/config-models.ts"
import type { Handlers } from "../contract/endpoint.ts"
import { Fault } from "../contract/errors.ts"
import {
  type CatalogModel,
  type CatalogOperatorTable,
  GivenModel,
  type RemoteOperatorTable,
} from "../contract/operator.ts"
import { skuForm } from "../contract/platform/connected-models.ts"
import { readAdapter, readGguf } from "../engine/gguf.ts"

interface CatalogDeps {
  readonly dataDirectory: string
  readonly catalog: () => Promise<Catalog>
  read(config: ModelConfig): Promise<Model>
  /** Puts a model to work in the running server. */
  added(model: Model): void
  /** Of models at other servers; nothing is known of them where no server runs. */
  describe?(sku: string): Pick<z.infer<typeof CatalogModel>, "decides" | "calibrated">
}

export function catalogHandlers(deps: CatalogDeps): Handlers<CatalogOperatorTable> {
  return {
    listCatalog: async () => (await deps.catalog()).list().map((model) => listed(deps, model)),
    addModel: async ({ body }) => await add(deps, body),
  }
}

const listed = (
  { describe }: Pick<CatalogDeps, "describe">,
  { sku, kind, file, contextTokensMax, quantization, description, languages, licence }: Model,
): z.infer<typeof CatalogModel> => ({
  sku,
  kind,
  purpose: purposeOf(kind, file),
  context: contextTokensMax,
  quantization,
  description,
  languages: languages === undefined ? null : [...languages],
  licence: licence ?? null,
  decides: describe?.(sku).decides ?? null,
  calibrated: describe?.(sku).calibrated ?? null,
})

/** The same as in the console, for the operator's organization. */
export function remoteHandlers(deps: Parameters<typeof connectModel>[0]): Handlers<RemoteOperatorTable> {
  const { database, connector } = deps
  return {
    connectModel: async (call) => {
      const { key, ...given } = call.body
      const organization = await findFirstOrganization(database)
      if (!organization)
        throw new Fault("invalid_request", "Cannot connect the model: there is no organization")
      const organizationId = organization.id
      const { sku } = await connectModel(deps, call, { organizationId, given, key, createdBy: null })
      const model = deps.catalog.find(sku)
      if (!model) throw new Fault("conflict", `Cannot connect ${sku}: it was disconnected at this moment`)
      return listed({ describe: (name) => connector.describe(name) }, model)
    },
    checkModel: async ({ body: { model, cost_max_usd } }) =>
      await connector.check(model, cost_max_usd === undefined ? null : ticksOfUsd(cost_max_usd)),
  }
}

/** As the console says it: every generation model also decides, and an encoder decides only. */
function purposeOf(kind: Model["kind"], file: string): string {
  if (kind === "embedding") return "embeddings"
  return isEncoderFile(file) ? "decisions" : "decisions and text"
}

async function add(
  deps: CatalogDeps,
  given: z.infer<typeof GivenModel>,
): Promise<z.infer<typeof CatalogModel>> {
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
  return listed(deps, model)
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
function skuOf(file: string): string {
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
