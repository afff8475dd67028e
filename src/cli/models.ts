/** `umpire models`: lists the catalog, adds models to it from a file, an address or Hugging Face, and names virtual ones. */
import { basename, join, resolve } from "node:path"
import { loadConfig } from "../base/config.ts"
import { Fault } from "../contract/errors.ts"
import { type CliContext, type Command, UsageError, text } from "./command.ts"
import { download, reach } from "./download.ts"
import type { Operate } from "./operator.ts"
import { drawTable } from "./table.ts"
import { virtualModels, virtualOptionHelp, virtualOptions, virtualUsage } from "./virtual-models.ts"

interface ListedModel {
  readonly sku: string
  /** What it is for, such as decisions. */
  readonly purpose: string
  readonly context: number
  readonly quantization: string
  readonly description: string
}

export const models = (operate: (context: CliContext) => Operate): Command => ({
  usage: [
    "umpire models list",
    "umpire models pull hf:owner/repository:Q4_K_M [--sku name]",
    "umpire models pull https://example.com/model.gguf [--sha256 ...]",
    "umpire models add ./model.gguf|./model.onnx [--sku name] [--kind embedding] [--adapter ./lora.gguf]",
    ...virtualUsage,
  ],
  options: {
    sku: { type: "string" },
    kind: { type: "string" },
    adapter: { type: "string" },
    sha256: { type: "string" },
    "allow-http": { type: "boolean" },
    ...virtualOptions,
    json: { type: "boolean" },
  },
  optionHelp: {
    sku: "the name that requests use; defaults to the file's name",
    kind: "generation (default) or embedding",
    adapter: "a LoRA adapter of the model, a GGUF file; the SKU is then its name by default",
    sha256: "expected SHA-256 of the file",
    "allow-http": "accept a file over http:// without a checksum; it may have been changed in transit",
    ...virtualOptionHelp,
    json: "print JSON",
  },
  run: async (context) => await run(context, operate(context)),
})

async function run(context: CliContext, operate: Operate): Promise<number> {
  const [action, what] = context.positionals
  switch (action) {
    case "list":
      return show(context, await operate("models.list", {}), drawList)
    case "alias":
    case "fallback":
    case "split":
    case "cascade":
    case "remove":
    case "virtual":
      return await virtualModels(context, operate, action)
    case "add":
      if (!what) throw new UsageError("which file? umpire models add ./model.gguf")
      return await add(context, operate, resolve(context.workingDirectory, what))
    case "pull":
      if (!what) throw new UsageError("which model? umpire models pull hf:owner/repository:Q4_K_M")
      return await add(context, operate, await pull(context, what))
    default:
      throw new UsageError("say list, pull, add, alias, fallback, split, cascade, virtual or remove")
  }
}

async function add(context: CliContext, operate: Operate, file: string): Promise<number> {
  const sku = text(context, "sku")
  const kind = text(context, "kind")
  const adapter = text(context, "adapter")
  const input = {
    file,
    ...(sku === undefined ? {} : { sku }),
    ...(kind === undefined ? {} : { kind }),
    ...(adapter === undefined ? {} : { adapter: resolve(context.workingDirectory, adapter) }),
  }
  const added = await operate("models.add", input)
  // What models.add answers.
  return show(context, added, (model) => `${(model as ListedModel).sku} is in the catalog.\n`)
}

async function pull(context: CliContext, what: string): Promise<string> {
  const source = what.startsWith("hf:") ? await onHuggingFace(context, what) : plainSource(what)
  const { data_dir } = loadConfig(context.environment, context.workingDirectory)
  const file = join(data_dir, "models", source.name)
  const sha256 = text(context, "sha256") ?? source.sha256
  if (sha256 === null && source.url.startsWith("http:") && context.values["allow-http"] !== true)
    throw new UsageError("an http:// address needs --sha256, or --allow-http to skip the check")
  const bar = new ProgressBar(context, source.name)
  const found = await download({
    url: source.url,
    file,
    sha256,
    progress: (done, total) => bar.draw(done, total),
  })
  bar.end(
    sha256 === null
      ? `${source.name}: SHA-256 ${found} (nothing to check it against)`
      : `${source.name}: checksum right`,
  )
  return file
}

interface Source {
  readonly url: string
  readonly name: string
  readonly sha256: string | null
}

function plainSource(what: string): Source {
  const url = URL.canParse(what) ? new URL(what) : null
  if (!url || !/^https?:$/.test(url.protocol))
    throw new UsageError("pull takes an http(s) address or hf:owner/repository:quantization")
  const name = basename(decodeURIComponent(url.pathname))
  if (!/\.(?:gguf|onnx)$/.test(name)) throw new UsageError("the address must name a .gguf or .onnx file")
  return { url: what, name, sha256: null }
}

const filesListedMax = 10_000

/** The one file of the quantization; split models come in several and are not taken. */
async function onHuggingFace({ environment }: CliContext, what: string): Promise<Source> {
  const [, repository, quantization] = /^hf:([\w.-]+\/[\w.-]+):([\w.-]+)$/.exec(what) ?? []
  if (repository === undefined || quantization === undefined)
    throw new UsageError(
      "say hf:owner/repository:quantization, for example hf:bartowski/Qwen_Qwen3-4B-GGUF:Q4_K_M",
    )
  const host = (environment["HF_ENDPOINT"] ?? "https://huggingface.co").replace(/\/$/, "")
  const response = await reach(`${host}/api/models/${repository}/tree/main`)
  if (!response.ok)
    throw new Fault("invalid_request", `Cannot find ${repository}: the server answered ${response.status}`)
  const files = ((await response.json()) as { path: string; lfs?: { oid?: string } }[]).slice(
    0,
    filesListedMax,
  )
  const wanted = quantization.toLowerCase()
  const fitting = files.filter(({ path }) => path.endsWith(".gguf") && named(path, wanted))
  const [file, another] = fitting
  if (!file || another)
    throw new Fault(
      "invalid_request",
      `Cannot tell which file is ${quantization}: ${fitting.length} fit; there are ${files
        .map(({ path }) => path)
        .filter((path) => path.endsWith(".gguf"))
        .join(", ")}`,
    )
  const name = basename(file.path)
  return { url: `${host}/${repository}/resolve/main/${file.path}`, name, sha256: file.lfs?.oid ?? null }
}

const named = (path: string, quantization: string): boolean =>
  basename(path, ".gguf").toLowerCase().split(/[-.]/).includes(quantization)

const barWidth = 30
const mebibyte = 1024 * 1024

/** On a terminal only: a log has no use for a bar. */
class ProgressBar {
  readonly #context: CliContext
  readonly #name: string
  #drawn = -1

  constructor(context: CliContext, name: string) {
    this.#context = context
    this.#name = name
  }

  draw(done: number, total: number | null): void {
    const { stdout, stderr } = this.#context
    if (!stdout.isTTY) return
    const permille =
      total === null ? Math.floor(done / mebibyte) : Math.floor((done / Math.max(total, 1)) * 1000)
    if (permille === this.#drawn) return
    this.#drawn = permille
    const filled = total === null ? 0 : Math.round((permille / 1000) * barWidth)
    const bar = `${"█".repeat(filled)}${"░".repeat(barWidth - filled)}`
    const size = `${Math.round(done / mebibyte)}${total === null ? "" : ` of ${Math.round(total / mebibyte)}`} MiB`
    stderr.write(`\r${this.#name} ${bar} ${size}`)
  }

  end(sentence: string): void {
    const { stdout, stderr } = this.#context
    stderr.write(stdout.isTTY ? `\r\u001b[K${sentence}\n` : `${sentence}\n`)
  }
}

function show(context: CliContext, result: unknown, draw: (result: unknown) => string): number {
  context.stdout.write(context.values["json"] === true ? `${JSON.stringify(result)}\n` : draw(result))
  return 0
}

function drawList(result: unknown): string {
  // What models.list answers.
  const rows = (result as ListedModel[]).map((model) => [
    model.sku,
    model.purpose,
    String(model.context),
    model.quantization,
    model.description,
  ])
  return drawTable(["model", "purpose", "context", "quantization", "description"], rows)
}
