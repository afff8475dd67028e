/** The branches of a job as one tree of tokens, in depth-first order, so that what they share is evaluated once. */
import assert from "node:assert/strict"

/** Nodes are numbered in depth-first order; the children of the (absent) root have depth 1. */
export interface TokenTrie {
  readonly tokens: Int32Array
  readonly depths: Int32Array
  /** Where branches end, in depth-first order. Identical branches end together and are asked once. */
  readonly ends: readonly TrieEnd[]
  readonly branchCount: number
  readonly depthMax: number
}

export interface TrieEnd {
  readonly node: number
  readonly branches: readonly number[]
}

/**
 * Branches are put in token order first, so the tree, and with it the shape of every decode, does not depend on the
 * order in which they came.
 */
export function buildTrie(branches: readonly Int32Array[]): TokenTrie {
  const order = branches
    .map((_, index) => index)
    .toSorted((a, b) => compareTokens(at(branches, a), at(branches, b)))
  const tokens: number[] = []
  const depths: number[] = []
  const ends: { node: number; branches: number[] }[] = []
  let previous: Int32Array = new Int32Array(0)
  for (const index of order) {
    const branch = at(branches, index)
    assert(branch.length > 0, "a branch has no tokens")
    const shared = sharedLength(previous, branch)
    for (let depth = shared; depth < branch.length; depth++) {
      tokens.push(branch[depth] ?? 0)
      depths.push(depth + 1)
    }
    const last = ends.at(-1)
    if (last !== undefined && shared === branch.length && shared === previous.length)
      last.branches.push(index)
    else ends.push({ node: tokens.length - 1, branches: [index] })
    previous = branch
  }
  return {
    tokens: Int32Array.from(tokens),
    depths: Int32Array.from(depths),
    ends,
    branchCount: branches.length,
    depthMax: branches.reduce((longest, branch) => Math.max(longest, branch.length), 0),
  }
}

/** How many tokens two lists have in common from the start. */
export function sharedLength(a: Int32Array, b: Int32Array): number {
  const limit = Math.min(a.length, b.length)
  let length = 0
  while (length < limit && a[length] === b[length]) length++
  return length
}

function compareTokens(a: Int32Array, b: Int32Array): number {
  const shared = sharedLength(a, b)
  // Past the end of the shorter list there is no token, which sorts first.
  return (a[shared] ?? -1) - (b[shared] ?? -1)
}

function at(branches: readonly Int32Array[], index: number): Int32Array {
  const branch = branches[index]
  assert(branch !== undefined)
  return branch
}
