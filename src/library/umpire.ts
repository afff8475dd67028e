/** What a program holds of a loaded model, in Node and in a browser: the model is in a thread, which is called here. */
import { Connection } from "../base/peer/connection.ts"
import { type Channel, PeerGone } from "../base/peer/peer.ts"
import { Fault } from "../contract/errors.ts"
import { UmpireError } from "./error.ts"
import type { LibraryService } from "./service.ts"
import type {
  Answers,
  BrowserUmpire,
  CallOptions,
  Decision,
  DecideRequest,
  ManyOptions,
  Question,
  RowResult,
  SetDecision,
  TaughtSet,
} from "./types.ts"

const concurrencyDefault = 8

/** Opens the model; where that fails the thread is closed. */
export async function umpireOn<Model>(thread: UmpireThread<Model>, open: Model): Promise<BrowserUmpire> {
  const model = await thread.call("open", open).catch(async (error: unknown) => {
    await thread.close()
    throw error
  })
  const decide: BrowserUmpire["decide"] = async ({ input, questions, signal }) => {
    const request = JSON.stringify({ model: model.name, input, questions })
    const { answers, inputTokens } = await thread.call("decide", { request, set: null }, signal)
    // The contract answers every question under its name, in its kind.
    return { answers: answers as Answers<typeof questions>, inputTokens }
  }
  const close = async (): Promise<void> => await thread.close()
  return {
    model,
    decide,
    decideMany: (rows, questions, options = {}) => decideMany(decide, rows, { questions, ...options }),
    rerank: async ({ signal, ...work }) => await thread.call("rerank", work, signal),
    set: async (file) => await openSet(thread, file),
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function openSet<Model>(thread: UmpireThread<Model>, file: Uint8Array): Promise<TaughtSet> {
  const set = await thread.call("openSet", file)
  return {
    name: set.name,
    version: set.version,
    async decide({ input, signal }: { readonly input: string } & CallOptions): Promise<SetDecision> {
      const request = JSON.stringify({ model: `set:${set.name}`, input, questions: [] })
      return await thread.call("decide", { request, set: set.id }, signal)
    },
  }
}

interface Many<Asked extends readonly Question[]> extends ManyOptions {
  readonly questions: Asked
}

/** At most `concurrency` rows are at work or wait to be taken. */
async function* decideMany<
  Row extends string | { readonly input: string },
  Asked extends readonly Question[],
>(
  decide: (request: DecideRequest<Asked>) => Promise<Decision<Asked>>,
  rows: Iterable<Row> | AsyncIterable<Row>,
  { questions, signal, concurrency = concurrencyDefault }: Many<Asked>,
): AsyncGenerator<RowResult<Row, Asked>, void, undefined> {
  if (!Number.isSafeInteger(concurrency) || concurrency < 1)
    throw new UmpireError(
      "invalid_request",
      `Cannot decide: ${concurrency} rows at a time; it must be at least 1`,
    )
  const ended = new AbortController()
  const either = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal
  const decideRow = async (row: Row): Promise<RowResult<Row, Asked>> => {
    try {
      const input = typeof row === "string" ? row : row.input
      return { row, error: null, ...(await decide({ input, questions, signal: either })) }
    } catch (error) {
      if (error instanceof UmpireError && error.code !== "closed") return { row, error }
      throw error
    }
  }
  const atWork: Promise<RowResult<Row, Asked>>[] = []
  const next = async (): Promise<RowResult<Row, Asked>> =>
    await (atWork.shift() ?? Promise.reject(new Error()))
  try {
    for await (const row of rows) {
      const result = decideRow(row)
      // Awaited in its turn; until then its failure is not unhandled.
      result.catch(() => undefined)
      atWork.push(result)
      if (atWork.length >= concurrency) yield await next()
    }
    while (atWork.length > 0) yield await next()
  } finally {
    ended.abort()
  }
}

/** The thread or worker behind a library. */
export class UmpireThread<Model> {
  readonly #connection: Connection<LibraryService<Model>>
  #isClosed = false

  constructor(channel: Channel) {
    this.#connection = new Connection(channel)
  }

  async call<Name extends keyof LibraryService<Model>>(
    method: Name,
    input: LibraryService<Model>[Name]["input"],
    signal?: AbortSignal,
  ): Promise<LibraryService<Model>[Name]["output"]> {
    try {
      return await this.#connection.call(method, input, signal)
    } catch (error) {
      if (this.#isClosed && error instanceof PeerGone)
        throw new UmpireError("closed", "Cannot go on: it is closed")
      if (error instanceof Fault) throw new UmpireError(error.code, error.message, { cause: error })
      throw error
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#connection.close()
  }
}
