/** The thread that runs the network: a run blocks its thread, and requests are prepared and cancelled meanwhile. */
import { servePeer } from "../../base/peer/serve.ts"
import { hasCudaProvider } from "../../base/cuda-provider.ts"
import type { Graph, Past } from "./graph.ts"
import { type GraphOptions, gpu, openGraph } from "./graph-sessions.ts"
import type { EncoderDescription } from "./model-file.ts"
import type { GraphService, PastHandle } from "./threaded-graph.ts"

const pasts = new Map<number, Past>()
let graph: Graph | undefined

servePeer<GraphService>({
  open: async ({ description, options }) => {
    if (options.gpu && hasCudaProvider()) graph = await openOnGpu(description, options).catch(notOnGpu)
    const isOnGpu = graph !== undefined
    graph ??= await openGraph(description, options)
    return { isOnGpu }
  },
  readEvidence: async ({ past, block, start }) => await opened().readEvidence(find(past), block, start),
  readBranch: async ({ past, part, at }) => await opened().readBranch(find(past), part, at),
  scoreRows: async (rows) => await opened().scoreRows(rows),
  scoreQuestions: async ({ past, rows, offset }) => await opened().scoreQuestions(find(past), rows, offset),
  release: (id) => void pasts.delete(id),
})

/** With a first run, so that what the GPU cannot run is known now. */
async function openOnGpu(description: EncoderDescription, options: GraphOptions): Promise<Graph> {
  const found = await openGraph(description, { ...options, shortRunTokensMax: Infinity }, gpu)
  const branches = [Int32Array.of(0)]
  const question = { stem: new Int32Array(), branches }
  await found.scoreRows([{ evidence: Int32Array.of(0), questions: [question], pooling: "whole" }])
  return found
}

/** The processor does the work instead. */
function notOnGpu(error: Error): undefined {
  const { message } = error.cause instanceof Error ? error.cause : error
  const [reason] = /CUDA failure[^;]*/.exec(message) ?? message.trim().split("\n")
  process.stderr.write(`The GPU is not used: ${reason}\n`)
}

/** Made when it is first used. */
function find({ id, tokens, base }: PastHandle): Past {
  const known = pasts.get(id)
  if (known) return known
  const made =
    base === null ? opened().createPast(tokens) : opened().extendPast(find(base), tokens - base.tokens)
  pasts.set(id, made)
  return made
}

function opened(): Graph {
  if (!graph) throw new Error("Cannot run the network: it is not loaded")
  return graph
}
