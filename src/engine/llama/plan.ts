/** Cuts the next group of tokens from a job's tree and says which sequences each token belongs to. */
import type { BatchToken } from "./decoder.ts"
import type { TokenTrie, TrieEnd } from "./trie.ts"

/** Where a walk over a tree stands: the next node, and the next end at or after it. */
export interface TrieCursor {
  readonly node: number
  readonly end: number
}

export const TRIE_START: TrieCursor = { node: 0, end: 0 }

/** A run of nodes in depth-first order. Before it, the trunk holds the path to its first node. */
export interface Group {
  readonly start: TrieCursor
  readonly next: TrieCursor
  readonly leaves: readonly GroupLeaf[]
  /** Depth down to which the trunk's path is also on the path to the next group's first node. */
  readonly trunkDepth: number
}

interface GroupLeaf extends TrieEnd {
  /** Depth down to which the trunk already holds this leaf's path. */
  readonly sharedDepth: number
}

interface GroupBounds {
  readonly tokensMax: number
  readonly leavesMax: number
}

/** Takes as many nodes as the bounds allow; both are at least 1, so every group makes progress. */
export function cutGroup(trie: TokenTrie, start: TrieCursor, bounds: GroupBounds): Group {
  const leaves: GroupLeaf[] = []
  let node = start.node
  let end = start.end
  let lowest = Number.POSITIVE_INFINITY
  while (node < trie.tokens.length && node - start.node < bounds.tokensMax) {
    const ending = trie.ends[end]
    const ends = ending?.node === node
    if (ends && leaves.length >= bounds.leavesMax) break
    // In depth-first order the path to a node leaves the first node's path at the shallowest depth met on the way.
    lowest = Math.min(lowest, depthOf(trie, node))
    if (ends) {
      leaves.push({ ...ending, sharedDepth: lowest - 1 })
      end++
    }
    node++
  }
  const trunkDepth = node < trie.tokens.length ? Math.min(lowest, depthOf(trie, node)) - 1 : 0
  return { start, next: { node, end }, leaves, trunkDepth }
}

interface GroupSequences {
  readonly trunk: number
  /** One per leaf of the group, in order. */
  readonly leaves: readonly number[]
}

/** The tokens of a group for one decode; `positionStart` is the position of depth 1. */
export function groupBatch(
  trie: TokenTrie,
  group: Group,
  sequences: GroupSequences,
  positionStart: number,
): BatchToken[] {
  const { start, next, leaves } = group
  const members: number[][] = Array.from({ length: next.node - start.node }, () => [])
  const ending = new Set<number>()
  for (const [index, leaf] of leaves.entries()) {
    ending.add(leaf.node)
    joinPath(trie, start.node, leaf.node, (node) =>
      members[node - start.node]?.push(sequences.leaves[index] ?? -1),
    )
  }
  if (next.node < trie.tokens.length) {
    joinPath(trie, start.node, next.node, (node) => members[node - start.node]?.push(sequences.trunk))
  }
  return members.map((sequencesOfToken, offset) => {
    const node = start.node + offset
    return {
      token: trie.tokens[node] ?? 0,
      position: positionStart + depthOf(trie, node) - 1,
      sequences: sequencesOfToken,
      output: ending.has(node),
    }
  })
}

/** Visits the nodes of a group that lie on the path to `target`, which is itself visited if it is in the group. */
function joinPath(trie: TokenTrie, first: number, target: number, visit: (node: number) => void): void {
  let depth = depthOf(trie, target) + 1
  for (let node = target; node >= first && depth > 1; node--) {
    const own = depthOf(trie, node)
    if (own >= depth) continue
    depth = own
    visit(node)
  }
}

function depthOf(trie: TokenTrie, node: number): number {
  return trie.depths[node] ?? 0
}
