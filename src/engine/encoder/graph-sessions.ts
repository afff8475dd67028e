/** Opens networks on ONNX Runtime for Node. */
import { closeSync, fstatSync, openSync, readSync } from "node:fs"
import { basename, dirname } from "node:path"
import { InferenceSession } from "onnxruntime-node"
import { type Graph, type OpenPart, createGraph } from "./graph.ts"
import type { EncoderDescription } from "./model-file.ts"
import { type Cut, type ModelPart, cutModel } from "./model-parts.ts"

export interface GraphOptions {
  readonly modelFile: string
  readonly threads: number
  /** Whether a GPU is used where ONNX Runtime's provider for it is installed and starts. */
  readonly gpu?: boolean
  /** Runs that cost more are long: others pass between their parts. None is by default. */
  readonly shortRunTokensMax?: number
}

/** What runs a network, and what the network is made into for it. */
interface Device extends Cut {
  readonly provider: "cpu" | "cuda"
  /** Whether ONNX Runtime looks for what it can do otherwise in the graph. */
  readonly isOptimized: boolean
}

/**
 * A part for every so many weights: 12 parts of the 110M network, 3 of the 33M one. A block of 512 tokens takes the larger 240 ms on two cores
 * with AMX, 500 ms without, and others wait for one part of it. Twelve parts instead of six make a short run 1 % slower.
 */
const PART_WEIGHTS = 7.1e6
/** Of a layer, in squares of its width: queries, keys, values and what follows them, and twice four in between. */
const LAYER_SQUARES = 12
const processor = ({ layers, heads, headSize }: EncoderDescription): Device => ({
  provider: "cpu",
  parts: Math.ceil((layers * LAYER_SQUARES * (heads * headSize) ** 2) / PART_WEIGHTS),
  products: "integers",
  isOptimized: false,
})
/** Between parts numbers would go to the machine's memory and back. */
export const gpu: Device = { provider: "cuda", parts: 1, products: "floats", isOptimized: true }

export async function openGraph(
  description: EncoderDescription,
  options: GraphOptions,
  device = processor(description),
): Promise<Graph> {
  const opened: OpenPart[] = []
  for (const { bytes, ...part } of partsOf(options.modelFile, description.layers, device))
    opened.push({ ...part, session: await openSession(bytes, { ...options, ...device }) })
  return createGraph(opened, description, options.shortRunTokensMax)
}

/** Read at a time: most fields are small, and the large ones are stepped over. */
const WINDOW_BYTES = 4096

/** Weights are not copied: they are mapped from the file when a session is made. */
export function partsOf(path: string, layers: number, cut: Cut): ModelPart[] {
  const file = openSync(path, "r")
  let window = { start: 0, bytes: new Uint8Array() }
  const read = (start: number, length: number): Uint8Array<ArrayBuffer> => {
    if (start < window.start || start + length > window.start + window.bytes.length) {
      const bytes = new Uint8Array(Math.max(length, WINDOW_BYTES))
      window = { start, bytes: bytes.subarray(0, readSync(file, bytes, 0, bytes.length, start)) }
    }
    return window.bytes.subarray(start - window.start, start - window.start + length)
  }
  try {
    return cutModel({ name: basename(path), size: fstatSync(file).size, read }, layers, cut)
  } finally {
    closeSync(file)
  }
}

interface SessionOptions {
  readonly modelFile: string
  readonly threads: number
  readonly provider?: Device["provider"]
  readonly isOptimized?: boolean
  /** Where the file's weights are, if not beside it. */
  readonly weightsFolder?: string
}

export async function openSession(
  bytes: Uint8Array,
  {
    modelFile,
    threads,
    provider = "cpu",
    isOptimized = true,
    weightsFolder = dirname(modelFile),
  }: SessionOptions,
): Promise<InferenceSession> {
  return await InferenceSession.create(bytes, {
    executionProviders: [provider],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: isOptimized ? "all" : "disabled",
    // Shapes differ from run to run: remembered patterns would only take memory. An arena for each part kept 280 MB after long texts, and
    // saves 1 to 2 % of the time.
    enableMemPattern: false,
    enableCpuMemArena: false,
    logSeverityLevel: 3,
    extra: {
      session: {
        // Threads that spin while they wait would take the cores of the gateway.
        intra_op: { allow_spinning: "0" },
        model_external_initializers_file_folder_path: weightsFolder,
      },
    },
  }).catch((cause: unknown) => {
    throw new Error(`Cannot load the model: ONNX Runtime does not accept ${modelFile}`, { cause })
  })
}
