/** The thread that runs the network: a run blocks its thread, and requests are prepared and cancelled meanwhile. */
import { servePeer } from "../../base/peer/connection.ts"
import { type Graph, type Past, openGraph } from "./graph.ts"
import type { GraphService, PastHandle } from "./encoder.ts"

const pasts = new Map<number, Past>()
let graph: Graph | undefined

servePeer<GraphService>({
  open: async ({ description, options }) => {
    graph = await openGraph(description, options)
  },
  readEvidence: async ({ past, block, start }) => await opened().readEvidence(find(past), block, start),
  readBranch: async ({ past, part, at }) => await opened().readBranch(find(past), part, at),
  scoreRows: async (rows) => await opened().scoreRows(rows),
  scoreQuestions: async ({ past, rows, offset }) => await opened().scoreQuestions(find(past), rows, offset),
  release: (id) => void pasts.delete(id),
})

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
