import fc from "fast-check"
import { expect, test } from "vitest"
import { branchesOf } from "../../../test/naive-scorer.ts"
import { TRIE_START, cutGroup, groupBatch } from "./plan.ts"
import { buildTrie } from "./trie.ts"

const someBranches = fc
  .array(fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 12 }), { maxLength: 20 })
  .map((branches) => branches.map((branch) => Int32Array.from(branch)))

test("a tree gives back the branches it was built from", () => {
  fc.assert(
    fc.property(someBranches, (branches) => {
      expect(branchesOf(buildTrie(branches))).toEqual(branches)
    }),
  )
})

test("a tree holds every distinct start of a branch once", () => {
  fc.assert(
    fc.property(someBranches, (branches) => {
      const starts = new Set(
        branches.flatMap((branch) => [...branch.keys()].map((end) => branch.slice(0, end + 1).join())),
      )
      expect(buildTrie(branches).tokens.length).toBe(starts.size)
    }),
  )
})

test("a tree is the same whatever the order of the branches", () => {
  fc.assert(
    fc.property(someBranches, (branches) => {
      const { tokens, depths } = buildTrie(branches)
      const turned = buildTrie(branches.toReversed())
      expect({ tokens: turned.tokens, depths: turned.depths }).toEqual({ tokens, depths })
    }),
  )
})

test("identical branches end together and are asked once", () => {
  const branch = Int32Array.of(4, 5)
  expect(buildTrie([branch, Int32Array.of(4), branch]).ends).toEqual([
    { node: 0, branches: [1] },
    { node: 1, branches: [0, 2] },
  ])
})

test("groups cover a tree in order, within their bounds", () => {
  const bounds = fc.record({
    tokensMax: fc.integer({ min: 1, max: 9 }),
    leavesMax: fc.integer({ min: 1, max: 4 }),
  })
  fc.assert(
    fc.property(someBranches, bounds, (branches, limits) => {
      const trie = buildTrie(branches)
      const ends: number[] = []
      let cursor = TRIE_START
      while (cursor.node < trie.tokens.length) {
        const group = cutGroup(trie, cursor, limits)
        const leaves = group.leaves.map((_, index) => 10 + index)
        const batch = groupBatch(trie, group, { trunk: 1, leaves }, 100)
        expect(batch.length).toBeGreaterThan(0)
        expect(batch.length).toBeLessThanOrEqual(limits.tokensMax)
        expect(leaves.length).toBeLessThanOrEqual(limits.leavesMax)
        expect(batch.every(({ sequences }) => sequences.length > 0)).toBe(true)
        ends.push(...group.leaves.map(({ node }) => node))
        expect(group.start).toEqual(cursor)
        cursor = group.next
      }
      expect(ends).toEqual(trie.ends.map(({ node }) => node))
    }),
  )
})
