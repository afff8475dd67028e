/** Scoring without any sharing, as a reference for correctness and as a yardstick for speed. */
import type { LlamaContext } from "../src/engine/llama/binding.ts"
import type { BatchToken } from "../src/engine/llama/decoder.ts"
import type { TokenTrie } from "../src/engine/llama/trie.ts"

/** Evaluates the whole prompt anew for every branch, alone in the context. */
export async function scoreNaively(
  context: LlamaContext,
  prefix: Int32Array,
  branches: readonly Int32Array[],
): Promise<number[]> {
  const answers: number[] = []
  for (const branch of branches) {
    context.clear()
    answers.push(await evaluate(context, [...prefix, ...branch], 0))
  }
  context.clear()
  return answers
}

/** Evaluates the prefix once and the branches one after the other. */
export async function scoreInTurn(
  context: LlamaContext,
  prefix: Int32Array,
  branches: readonly Int32Array[],
): Promise<number[]> {
  context.clear()
  await evaluate(context, [...prefix], 0)
  const answers: number[] = []
  for (const branch of branches) {
    answers.push(await evaluate(context, [...branch], prefix.length))
    context.removeSequence(0, prefix.length)
  }
  context.clear()
  return answers
}

/** One plain prompt: what the same number of tokens costs when nothing is asked. */
export async function evaluatePlainly(context: LlamaContext, tokens: readonly number[]): Promise<void> {
  context.clear()
  await evaluate(context, tokens, 0)
  context.clear()
}

async function evaluate(
  context: LlamaContext,
  tokens: readonly number[],
  positionStart: number,
): Promise<number> {
  let last = 0
  for (let start = 0; start < tokens.length; start += context.batchTokensMax) {
    const batch: BatchToken[] = tokens.slice(start, start + context.batchTokensMax).map((token, offset) => ({
      token,
      position: positionStart + start + offset,
      sequences: [0],
      output: start + offset === tokens.length - 1,
    }))
    await context.decode(batch)
    last = batch.length - 1
  }
  return context.difference(last)
}

/** The branches of a tree, in the order in which they were given. */
export function branchesOf(trie: TokenTrie): Int32Array[] {
  const branches: Int32Array[] = []
  const path: number[] = []
  let node = 0
  for (const end of trie.ends) {
    for (; node <= end.node; node++) {
      path.length = (trie.depths[node] ?? 0) - 1
      path.push(trie.tokens[node] ?? 0)
    }
    for (const branch of end.branches) branches[branch] = Int32Array.from(path)
  }
  return branches
}
