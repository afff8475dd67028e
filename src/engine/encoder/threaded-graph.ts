/** A network in a thread of its own. Nothing large is imported here, so that the thread can be started first. */
import { Connection } from "../../base/peer/connection.ts"
import { threadChannel } from "../../base/peer/supervisor.ts"
import {
  type BranchPart,
  type BranchRow,
  type BranchScores,
  type Graph,
  type GraphRow,
  type Past,
  type RowScores,
  type Tokens,
  pastBytes,
} from "./graph.ts"
import type { GraphOptions } from "./graph-sessions.ts"
import type { EncoderDescription } from "./model-file.ts"

/** What the thread of the network serves. */
export interface GraphService {
  open: {
    input: { readonly description: EncoderDescription; readonly options: GraphOptions }
    output: { readonly isOnGpu: boolean }
  }
  readEvidence: {
    input: { readonly past: PastHandle; readonly block: Tokens; readonly start: number }
    output: Float32Array
  }
  readBranch: {
    input: { readonly past: PastHandle; readonly part: Tokens; readonly at: BranchPart }
    output: void
  }
  scoreRows: { input: readonly GraphRow[]; output: RowScores[] }
  scoreQuestions: {
    input: {
      readonly past: PastHandle
      readonly rows: readonly BranchRow[]
      readonly offset: number
    }
    output: BranchScores
  }
  release: { input: number; output: void }
}

export interface PastHandle extends Past {
  readonly id: number
  /** What it begins with. */
  readonly base: PastHandle | null
}

export type GraphThread = Connection<GraphService>

export const startGraphThread = (): GraphThread =>
  new Connection<GraphService>(threadChannel(new URL("./graph-thread.ts", import.meta.url)))

export async function openThreadedGraph(
  thread: GraphThread,
  description: EncoderDescription,
  options: GraphOptions,
): Promise<{ graph: Graph; isOnGpu: boolean }> {
  const { isOnGpu } = await thread.call("open", { description, options })
  return { graph: new ThreadedGraph(thread, description), isOnGpu }
}

/** The network in its thread; this side has handles of what lies there. */
class ThreadedGraph implements Graph {
  readonly #thread: Connection<GraphService>
  readonly #description: EncoderDescription
  #lastId = 0

  constructor(thread: Connection<GraphService>, description: EncoderDescription) {
    this.#thread = thread
    this.#description = description
  }

  bytesOf(tokens: number): number {
    return pastBytes(this.#description, tokens)
  }

  createPast(tokens: number): PastHandle {
    return { id: ++this.#lastId, tokens, bytes: this.bytesOf(tokens), base: null }
  }

  extendPast(past: Past, tokens: number): PastHandle {
    return { ...this.createPast(past.tokens + tokens), base: handle(past) }
  }

  releasePast(past: Past): void {
    // A thread that is gone has nothing left to release.
    void this.#thread.call("release", handle(past).id).catch(() => undefined)
  }

  async readEvidence(past: Past, block: Tokens, start: number): Promise<Float32Array> {
    return await this.#thread.call("readEvidence", { past: handle(past), block: block.slice(), start })
  }

  async readBranch(past: Past, part: Tokens, at: BranchPart): Promise<void> {
    await this.#thread.call("readBranch", { past: handle(past), part: part.slice(), at })
  }

  async scoreRows(rows: readonly GraphRow[]): Promise<RowScores[]> {
    const sent = rows.map(({ evidence, questions, pooling }) => ({ evidence, questions, pooling }))
    return await this.#thread.call("scoreRows", sent)
  }

  async scoreQuestions(past: Past, rows: readonly BranchRow[], offset = 0): Promise<BranchScores> {
    const sent = rows.map((row) =>
      row.map(({ stem, branches }) => ({ stem, branches: branches.map((branch) => branch.slice()) })),
    )
    return await this.#thread.call("scoreQuestions", { past: handle(past), rows: sent, offset })
  }

  async close(): Promise<void> {
    await this.#thread.close()
  }
}

/** Every past that is given to this graph was made by it. */
const handle = (past: Past): PastHandle => past as PastHandle
