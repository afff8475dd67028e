/**
 * A graph for tests: the margin of a branch is the sum of every token that it sees, so that what it sees can be checked. A
 * vector has, in its first and last part, the number of its tokens in the place of each token's last digit, in the middle one in
 * that of the rest by seven, and similarity counts by a branch's length.
 */
import { questionLength } from "../src/engine/encoder/job.ts"
import type {
  BranchPart,
  BranchRow,
  BranchScores,
  Graph,
  GraphRow,
  Past,
  Pooling,
  QuestionTokens,
  RowScores,
  Tokens,
} from "../src/engine/encoder/graph.ts"

export type FakeRun =
  | { readonly kind: "rows"; readonly rows: number }
  | { readonly kind: "evidence"; readonly tokens: number; readonly start: number }
  | { readonly kind: "branch part"; readonly tokens: number; readonly offset: number }
  | {
      readonly kind: "branches"
      readonly branches: number
      /** Tokens of each row. */
      readonly rows: readonly number[]
      readonly pastTokens: number
    }

interface FakePast extends Past {
  sum: number
}

export const FAKE_TOKEN_BYTES = 10

export class FakeGraph implements Graph {
  readonly runs: FakeRun[] = []
  /** Those that are not released. */
  readonly pasts = new Set<Past>()
  /** Called before each run, for tests that act between runs; it may throw. */
  onRun: (run: FakeRun) => void = () => undefined
  /** Awaited in each run, for tests that hold one. */
  held: (run: FakeRun) => Promise<void> = async () => undefined

  bytesOf(tokens: number): number {
    return tokens * FAKE_TOKEN_BYTES
  }

  createPast(tokens: number): FakePast {
    const past = { tokens, bytes: this.bytesOf(tokens), sum: 0 }
    this.pasts.add(past)
    return past
  }

  extendPast(past: Past, tokens: number): FakePast {
    const longer = { ...(past as FakePast), tokens: past.tokens + tokens }
    this.pasts.add(longer)
    return longer
  }

  releasePast(past: Past): void {
    this.#checkKept(past)
    this.pasts.delete(past)
  }

  async readEvidence(past: Past, block: Tokens, start: number): Promise<Float32Array> {
    this.#checkKept(past)
    await this.#run({ kind: "evidence", tokens: block.length, start })
    ;(past as FakePast).sum += sum(block)
    return digits(block)
  }

  async readBranch(past: Past, part: Tokens, { offset }: BranchPart): Promise<void> {
    this.#checkKept(past)
    await this.#run({ kind: "branch part", tokens: part.length, offset })
    ;(past as FakePast).sum += sum(part)
  }

  async scoreRows(rows: readonly GraphRow[]): Promise<RowScores[]> {
    await this.#run({ kind: "rows", rows: rows.length })
    return rows.map(({ evidence, questions, pooling }) => ({
      ...scoresOf(sum(evidence), questions),
      vector: vectorOf(evidence, pooling),
    }))
  }

  async scoreQuestions(past: Past, rows: readonly BranchRow[]): Promise<BranchScores> {
    this.#checkKept(past)
    const questions = rows.flat()
    const branches = questions.reduce((count, question) => count + question.branches.length, 0)
    const lengths = rows.map((row) => row.reduce((count, question) => count + questionLength(question), 0))
    await this.#run({ kind: "branches", branches, rows: lengths, pastTokens: past.tokens })
    return scoresOf((past as FakePast).sum, questions)
  }

  async close(): Promise<void> {
    this.runs.length = 0
  }

  #checkKept(past: Past): void {
    if (!this.pasts.has(past)) throw new Error("The past was released")
  }

  async #run(run: FakeRun): Promise<void> {
    this.onRun(run)
    this.runs.push(run)
    await this.held(run)
  }
}

function scoresOf(seen: number, questions: readonly QuestionTokens[]): BranchScores {
  const margins = questions.flatMap(({ stem, branches }) =>
    branches.map((branch) => seen + sum(stem) + sum(branch)),
  )
  const lengths = questions.flatMap(({ branches }) => branches.map(({ length }) => length))
  return { margins: Float32Array.from(margins), similarityWeights: Float32Array.from(lengths) }
}

const sum = (tokens: Tokens): number => tokens.reduce((total, token) => total + token, 0)

function vectorOf(evidence: Tokens, pooling: Pooling): Float32Array {
  const whole = digits(evidence)
  if (pooling === "middle") whole.fill(0, 0, (2 * whole.length) / 3)
  return pooling === "none" ? new Float32Array() : whole
}

export function digits(tokens: Tokens): Float32Array {
  const counts = new Float32Array(30)
  for (const token of tokens)
    for (const at of [token % 10, 10 + (token % 7), 20 + (token % 10)]) counts[at] = (counts[at] ?? 0) + 1
  return counts
}
