/** Opens an encoder on ONNX Runtime for Node. The network runs in a thread of its own, so that requests are read and answered meanwhile. */
import { availableParallelism } from "node:os"
import {
  Encoder,
  RUN_TOKENS_ON_GPU,
  RUN_TOKENS_PER_THREAD,
  SHARED_TOKENS_PER_THREAD,
  type SchedulingOptions,
} from "./encoder.ts"
import { checkWeights, readEncoderFile } from "./read-model-file.ts"
import { type GraphThread, openThreadedGraph, startGraphThread } from "./threaded-graph.ts"

export interface EncoderOptions extends SchedulingOptions {
  /** Path of an ONNX file. */
  readonly modelFile: string
  readonly threads?: number
  /** Whether a GPU is used where there is one and what it needs is installed. */
  readonly gpu?: boolean
}

/** The thread of the network loads its modules while the file is read; it ends where that fails. */
export async function openEncoder(
  options: EncoderOptions,
  thread: GraphThread = startGraphThread(),
): Promise<Encoder> {
  const { modelFile, threads = availableParallelism(), gpu = false } = options
  try {
    const file = await readEncoderFile(modelFile)
    await checkWeights(modelFile, file)
    const shortRunTokensMax = RUN_TOKENS_PER_THREAD * threads
    const graphOptions = { modelFile, threads, gpu, shortRunTokensMax }
    const { graph, isOnGpu } = await openThreadedGraph(thread, file.description, graphOptions)
    if (isOnGpu) return new Encoder(file, graph, { ...options, runTokensMax: RUN_TOKENS_ON_GPU })
    const sharedTokensMax = SHARED_TOKENS_PER_THREAD * threads
    return new Encoder(file, graph, { ...options, runTokensMax: shortRunTokensMax, sharedTokensMax })
  } catch (error) {
    await thread.close()
    throw error
  }
}
