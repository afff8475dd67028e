/** `umpire models`: lists the catalog, adds models to it from a file, an address or Hugging Face, and names virtual ones. */
import { basename, join, resolve } from "node:path"
import type { z } from "zod"
import { loadConfig } from "../base/config.ts"
import type { OperatorClient } from "../contract/client.ts"
import { Fault } from "../contract/errors.ts"
import { type CatalogModel, GivenModel } from "../contract/operator.ts"
import { type Action, operatorCommand, operates, readFields } from "./actions.ts"
import { type CliContext, UsageError, flagOption, required, show, text, valueOption } from "./command.ts"
import { download, reach } from "./download.ts"
import { remoteActions } from "./remote-models.ts"
import { columns } from "./table.ts"
import { virtualActions, virtualOptions, virtualUsage } from "./virtual-models.ts"

/** Adds the file that the first argument leads to. */
const adding =
  (question: string, find: (context: CliContext, what: string) => Promise<string>): Action<OperatorClient> =>
  async (context, connect) => {
    const what = required(context.positionals[1], question)
    const fields = readFields(context, GivenModel, { sku: "sku", kind: "kind" })
    const adapter = text(context, "adapter")
    const file = await find(context, what)
    const { client } = await connect()
    const body = {
      file,
      ...fields,
      ...(adapter === undefined ? {} : { adapter: resolve(context.workingDirectory, adapter) }),
    }
    const added = await client.addModel({ body })
    return show(context, added, () => `${added.sku} is in the catalog.\n`)
  }

export const models = operatorCommand({
  usage: [
    "umpire models list",
    "umpire models pull hf:owner/repository:Q4_K_M [--sku name]",
    "umpire models pull https://example.com/model.gguf [--sha256 ...]",
    "umpire models connect openai|azure|anthropic|ollama|vllm|llama-server|... MODEL [--url address] [--key-from VARIABLE] --input-price 0.40 --output-price 1.60",
    "umpire models check NAME [--cost-max 0.50]",
    "umpire models add ./model.gguf|./model.onnx [--sku name] [--kind embedding] [--adapter ./lora.gguf]",
    ...virtualUsage,
  ],
  options: {
    sku: valueOption("the name that requests use; defaults to the file's name"),
    kind: valueOption("generation (default) or embedding"),
    adapter: valueOption("a LoRA adapter of the model, a GGUF file; the SKU is then its name by default"),
    url: valueOption("of a server to connect: its address, where it is not the usual one of its kind"),
    "key-from": valueOption("of a server to connect: the environment variable that holds its key"),
    context: valueOption("of a server to connect: the model's context in tokens; 128000 unless told"),
    "input-price": valueOption(
      "of a server to connect: USD per million input tokens; 0 where nobody asks for money",
    ),
    "cached-price": valueOption("the same of cached input tokens; the input's unless told"),
    "output-price": valueOption("of a server to connect: USD per million output tokens"),
    sha256: valueOption("expected SHA-256 of the file"),
    "allow-http": flagOption(
      "accept a file over http:// without a checksum; it may have been changed in transit",
    ),
    ...virtualOptions,
    "cost-max": valueOption("of a cascade: USD that a whole request may cost; of a check: that it may cost"),
  },
  inOrganization: true,
  actions: {
    list: operates("listCatalog", {
      draw: drawCatalog,
    }),
    pull: adding("which model? umpire models pull hf:owner/repository:Q4_K_M", pull),
    add: adding("which file? umpire models add ./model.gguf", async ({ workingDirectory }, file) =>
      resolve(workingDirectory, file),
    ),
    ...remoteActions,
    ...virtualActions,
  },
})

type Listed = z.infer<typeof CatalogModel>

/** What is told of few models stands where one has it. What it takes to choose fits a terminal of 80 columns, before the description. */
function drawCatalog(rows: readonly Listed[]): string {
  return columns<Listed>({
    model: ({ sku }) => sku,
    purpose: ({ purpose }) => purpose,
    context: ({ context }) => String(context),
    languages: ({ languages }) => shortList(languages ?? []),
    licence: ({ licence }) => licence ?? "",
    ...(rows.some(({ decides }) => decides) ? { decides: howItDecides } : {}),
    description: ({ description }) => description,
  })(rows)
}

const howItDecides = ({ decides, calibrated }: Listed): string =>
  `${decides ?? ""}${calibrated === false ? ", uncalibrated" : ""}`

/** "en +14": all of them are in the JSON. */
const shortList = ([first = "", ...more]: readonly string[]): string =>
  more.length === 0 ? first : `${first} +${more.length}`

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
