/** Opens an encoder on ONNX Runtime for browsers, in the worker that this is loaded in. */
import { env, InferenceSession } from "onnxruntime-web/wasm"
import { Encoder, RUN_TOKENS_PER_THREAD } from "./encoder.ts"
import { createGraph } from "./graph.ts"
import { readEncoder } from "./model-file.ts"
import { cutModel } from "./model-parts.ts"

type Bytes = Uint8Array<ArrayBuffer>

interface BrowserOptions {
  /** For sentences about the model. */
  readonly name: string
  /** Of the network, where the page is isolated; elsewhere there is one. */
  readonly threads: number
}

/** The runtime lies beside the script. It is compressed there: few servers of files would do that on the way. */
const runtime = { script: "ort-wasm-simd-threaded.mjs", binary: "ort-wasm-simd-threaded.wasm.gz" }

/** Where the network finds its weights: in the bytes of the file. */
const weightsName = "model.onnx"

/** Of evidence that was read: a page has less memory than a server. */
const cacheBytes = 64 * 1024 * 1024

export async function openEncoder(bytes: Bytes, { name, threads }: BrowserOptions): Promise<Encoder> {
  const read = (start: number, length: number): Bytes => bytes.subarray(start, start + length)
  const file = await readEncoder({ name, size: bytes.length, read })
  if (file.description.weightsFile)
    throw new Error("its weights lie in a second file; a browser takes models of one")
  // Memory that threads share exists in isolated pages alone.
  const { crossOriginIsolated = false } = globalThis as { readonly crossOriginIsolated?: boolean }
  const count = crossOriginIsolated ? threads : 1
  env.wasm.numThreads = count
  env.wasm.wasmPaths = { mjs: beside(runtime.script).href }
  env.wasm.wasmBinary = await fetchRuntime()
  const source = { name: weightsName, size: bytes.length, read }
  const [part] = cutModel(source, file.description.layers, { parts: 1, products: "integers" })
  if (!part) throw new Error("it has no network")
  const session = await InferenceSession.create(part.bytes, {
    executionProviders: ["wasm"],
    graphOptimizationLevel: "disabled",
    externalData: [{ path: weightsName, data: bytes }],
    enableMemPattern: false,
    logSeverityLevel: 3,
  }).catch((cause: unknown) => {
    throw new Error("ONNX Runtime does not accept it", { cause })
  })
  const runTokensMax = RUN_TOKENS_PER_THREAD * count
  return new Encoder(file, createGraph([{ ...part, session }], file.description), {
    runTokensMax,
    cacheBytes,
  })
}

const beside = (name: string): URL => new URL(name, import.meta.url)

const GZIP = [0x1f, 0x8b] as const

/** A server may have undone the compression, as if it were of the way. */
async function fetchRuntime(): Promise<ArrayBuffer> {
  const response = await fetch(beside(runtime.binary)).catch((cause: unknown) => {
    throw new Error(`${runtime.binary} cannot be fetched`, { cause })
  })
  if (!response.ok) throw new Error(`${runtime.binary} cannot be fetched: the answer is ${response.status}`)
  const bytes = await response.arrayBuffer()
  const [first, second] = new Uint8Array(bytes)
  if (first !== GZIP[0] || second !== GZIP[1]) return bytes
  return await new Response(
    new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")),
  ).arrayBuffer()
}
