/** An Umpire worker: engines without a store, served to gateways over HTTP; what `umpire worker` runs. */
import { timingSafeEqual, hash } from "node:crypto"
import { type IncomingMessage, type ServerResponse, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import type { Catalog, Model } from "../base/catalog.ts"
import { ConfigError } from "../base/config.ts"
import type { Config } from "../base/config-schema.ts"
import type { Log } from "../base/log.ts"
import { Fault } from "../contract/errors.ts"
import { startLlamaEngine } from "../engine/llama/llama-engine.ts"
import {
  type EmbedAnswer,
  type GenerationSizes,
  type ScoreAnswer,
  type StreamLine,
  type WireError,
  type WorkerRequest,
  digestHeader,
  digestOf,
  encodeError,
  encodeLine,
  findMismatch,
  healthPath,
  protocolHeader,
  protocolVersion,
  workPath,
} from "../engine/worker/wire.ts"
import { loadCatalog } from "./catalog.ts"
import { type Engines, createEngines, engineOptions } from "./engines.ts"
import { type Generators, createGenerators } from "./inference.ts"

interface WorkerServer {
  readonly url: string
  readonly catalog: Catalog
  close(): Promise<void>
}

interface WorkerOptions {
  readonly host: string
  readonly port: number
  /** The bearer value that gateways bring; without one only this machine may connect. */
  readonly key: string | undefined
}

/** The largest decision is 8 MiB, in which one character may need six as JSON. */
const requestBytesMax = 64 * 1024 * 1024
const headTimeoutMs = 30_000
const loopback = ["127.0.0.1", "::1", "localhost"]

interface Served {
  readonly catalog: Catalog
  readonly engines: Engines
  readonly generators: Generators
}

export async function startWorker(config: Config, options: WorkerOptions, log: Log): Promise<WorkerServer> {
  const { host, port, key } = options
  if (key === undefined && !loopback.includes(host))
    throw new ConfigError("Cannot serve other machines without a key: set UMPIRE_WORKER_KEY")
  const catalog = await loadCatalog(config.models, config.data_dir)
  const engines = createEngines((model) => startLlamaEngine(engineOptions(config, model, log)))
  const generators = createGenerators(config, log)
  const served = { catalog, engines, generators }
  const state = { stopping: false }
  const server = createServer({ headersTimeout: headTimeoutMs }, (request, response) => {
    answer(served, key, state, request, response).catch((error: unknown) => {
      log.debug({ err: error }, "a connection of a gateway broke")
      response.destroy()
    })
  })
  await engines.scorer(catalog.fallback)
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host, resolve))
  // True for a TCP server that listens.
  const { port: bound } = server.address() as AddressInfo
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    catalog,
    close: async () => {
      state.stopping = true
      const closed = new Promise((resolve) => server.close(resolve))
      const end = setTimeout(() => server.closeAllConnections(), config.server.shutdown_ms)
      await closed
      clearTimeout(end)
      await generators.close()
      await engines.close()
    },
  }
}

async function answer(
  served: Served,
  key: string | undefined,
  state: { readonly stopping: boolean },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method === "GET" && request.url === healthPath)
    return reply(response, state.stopping ? 503 : 200, { status: state.stopping ? "stopping" : "ok" })
  if (request.method !== "POST" || request.url !== workPath)
    return fail(response, new Fault("not_found", "Cannot find the address: a worker has one"))
  const gone = new AbortController()
  response.once("close", () => gone.abort(new Fault("inference_failed", "Cannot go on: the gateway left")))
  try {
    checkKey(key, request)
    checkProtocol(request)
    await run(served, await readRequest(request), response, gone.signal)
  } catch (error) {
    if (response.headersSent) throw error
    fail(response, error)
  }
}

function checkKey(key: string | undefined, request: IncomingMessage): void {
  if (key === undefined) return
  if (timingSafeEqual(digest(request.headers.authorization ?? ""), digest(`Bearer ${key}`))) return
  // To the gateway's user this is no mistake in their own credentials.
  throw new Fault("inference_failed", "Cannot run the work: the worker does not know the gateway's key")
}

function checkProtocol(request: IncomingMessage): void {
  const mismatch = findMismatch(request.headers[protocolHeader]?.toString())
  if (mismatch !== null) throw new Fault("inference_failed", `Cannot run the work: ${mismatch}`)
}

const digest = (text: string): Buffer => hash("sha256", text, "buffer")

async function readRequest(request: IncomingMessage): Promise<WorkerRequest> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > requestBytesMax) throw new Fault("body_over_limit", "Cannot take the work: it is too large")
    chunks.push(chunk)
  }
  // Gateways of ours send it; one that does not parse fails as an unexpected error.
  return JSON.parse(Buffer.concat(chunks).toString()) as WorkerRequest
}

async function run(
  { catalog, engines, generators }: Served,
  request: WorkerRequest,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const model = catalog.find(request.model)
  if (!model)
    throw new Fault("inference_failed", `Cannot run the work: the worker has no model ${request.model}`)
  switch (request.kind) {
    case "prepare_score":
    case "score": {
      const prepared = await (await engines.scorer(model)).prepare(request.work, signal)
      const { inputTokens } = prepared
      if (request.kind === "score")
        return reply(response, 200, { inputTokens, margins: [...(await prepared.run(signal))] })
      prepared.discard()
      return reply(response, 200, { inputTokens, margins: [] })
    }
    case "prepare_embedding":
    case "embed": {
      const prepared = await generators.local(model).embedder().prepare(request.work, signal)
      const vectors = request.kind === "embed" ? await prepared.run(signal) : []
      return reply(response, 200, {
        inputTokens: prepared.inputTokens,
        vectors: vectors.map((vector) => [...vector]),
      })
    }
    case "prepare_generation": {
      const prepared = await generators.local(model).prepare(request.work, signal)
      const { inputTokensMost, outputTokensMost } = prepared
      prepared.discard()
      return reply(response, 200, { inputTokensMost, outputTokensMost })
    }
    case "generate":
      return await generate(generators, model, request, response, signal)
  }
}

async function generate(
  generators: Generators,
  model: Model,
  { work, outputTokensMax }: Extract<WorkerRequest, { kind: "generate" }>,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const prepared = await generators.local(model).prepare(work, signal)
  response.writeHead(200, {
    "content-type": "application/x-ndjson",
    [protocolHeader]: protocolVersion,
  })
  const write = async (line: StreamLine): Promise<void> => {
    if (response.write(encodeLine(line))) return
    await new Promise<void>((resolve) => {
      response.once("drain", resolve)
      response.once("close", resolve)
    })
  }
  try {
    for await (const event of prepared.run(outputTokensMax, signal))
      await write({ kind: "event", event, usage: prepared.usage() })
    await write({ kind: "end", usage: prepared.usage() })
  } catch (error) {
    await write({ kind: "failed", error: encodeError(error), usage: prepared.usage() })
  }
  response.end()
}

type Answer =
  | ScoreAnswer
  | EmbedAnswer
  | GenerationSizes
  | { readonly status: string }
  | { readonly error: WireError }

function reply(response: ServerResponse, status: number, body: Answer): void {
  const text = JSON.stringify(body)
  response
    .writeHead(status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
      [digestHeader]: digestOf(text),
      [protocolHeader]: protocolVersion,
    })
    .end(text)
}

function fail(response: ServerResponse, error: unknown): void {
  const status = error instanceof Fault ? error.status : 500
  reply(response, status, { error: encodeError(error) })
}
