/** What a program that loads a model itself asks and gets: the contract's questions, with answers by name. */
/// <reference lib="esnext.disposable" preserve="true" />

export interface PredicateQuestion {
  readonly type: "predicate"
  readonly name: string
  readonly instructions: string
}

export interface ChoiceQuestion {
  readonly type: "choice"
  readonly name: string
  readonly instructions: string
  readonly choices: readonly {
    readonly value: string | boolean
    readonly description?: string | null | undefined
  }[]
}

export interface ScoreQuestion {
  readonly type: "score"
  readonly name: string
  readonly instructions: string
  readonly levels: readonly { readonly label: string; readonly description?: string | null | undefined }[]
}

export type Question = PredicateQuestion | ChoiceQuestion | ScoreQuestion

export interface PredicateAnswer {
  readonly type: "predicate"
  /** Of yes. */
  readonly probability: number
}

export interface ChoiceAnswer<Value = string | boolean> {
  readonly type: "choice"
  readonly choice: Value
  readonly confidence: number
  readonly probabilities: readonly { readonly value: Value; readonly probability: number }[]
}

export interface ScoreAnswer<Label = string> {
  readonly type: "score"
  /** The mean over the levels, from 0 for the first. */
  readonly score: number
  readonly confidence: number
  readonly probabilities: readonly {
    readonly label: Label
    readonly value: number
    readonly probability: number
  }[]
}

export type AnswerTo<Asked extends Question> = Asked extends ChoiceQuestion
  ? ChoiceAnswer<Asked["choices"][number]["value"]>
  : Asked extends ScoreQuestion
    ? ScoreAnswer<Asked["levels"][number]["label"]>
    : PredicateAnswer

/** Each answer under its question's name. */
export type Answers<Asked extends readonly Question[]> = {
  readonly [One in Asked[number] as One["name"]]: AnswerTo<One>
}

export interface Decision<Asked extends readonly Question[]> {
  readonly answers: Answers<Asked>
  readonly inputTokens: number
}

export interface CallOptions {
  /** Ends the work before its next step and rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

export interface DecideRequest<Asked extends readonly Question[]> extends CallOptions {
  /** The text that is asked about. */
  readonly input: string
  readonly questions: Asked
}

export interface ManyOptions extends CallOptions {
  /** Rows at work at a time; 8 unless told. */
  readonly concurrency?: number
}

/** What came of one row: its answers, or why it has none. */
export type RowResult<Row, Asked extends readonly Question[]> =
  | ({ readonly row: Row; readonly error: null } & Decision<Asked>)
  | { readonly row: Row; readonly error: Error & { readonly code: string } }

export interface EmbedRequest extends CallOptions {
  readonly inputs: readonly string[]
  /** The first so many numbers of each vector, scaled to length one; all 384 unless told. */
  readonly dimensions?: number
}

export interface RerankRequest extends CallOptions {
  readonly query: string
  readonly documents: readonly string[]
  /** So many of the best; all unless told. */
  readonly count?: number
}

export interface RankedDocument {
  /** Among `documents`. */
  readonly index: number
  /** The probability that the document helps to answer the query. */
  readonly relevance: number
}

export interface Verdict {
  readonly name: string
  /** "yes" or "no", the value of a choice, or the place of a level; null where the set abstains. */
  readonly verdict: string | number | boolean | null
  readonly confidence: number
  /** Whether what was taught was used. */
  readonly taught: boolean
}

export interface SetDecision {
  readonly answers: Readonly<Record<string, PredicateAnswer | ChoiceAnswer | ScoreAnswer>>
  readonly verdicts: Readonly<Record<string, Verdict>>
  readonly inputTokens: number
}

/** A question set that was exported from a server with `umpire sets export`. */
export interface TaughtSet {
  readonly name: string
  readonly version: number
  decide(request: { readonly input: string } & CallOptions): Promise<SetDecision>
}

export interface LoadOptions {
  /** `umpire-decide` unless told, `umpire-decide-small`, `umpire-decide-multilingual` where that is installed, or the path of an encoder's ONNX file. */
  readonly model?: string
  /** Of the network; as many as the machine has cores unless told. */
  readonly threads?: number
}

export interface Umpire {
  /** The model's own name and version. */
  readonly model: { readonly name: string; readonly version: string }
  decide<const Asked extends readonly Question[]>(request: DecideRequest<Asked>): Promise<Decision<Asked>>
  /** Rows in their order. No more are taken from `rows` than are at work; a row that is refused has its error, and the others go on. */
  decideMany<Row extends string | { readonly input: string }, const Asked extends readonly Question[]>(
    rows: Iterable<Row> | AsyncIterable<Row>,
    questions: Asked,
    options?: ManyOptions,
  ): AsyncIterableIterator<RowResult<Row, Asked>>
  /** Vectors of length one by all-MiniLM-L6-v2. */
  embed(request: EmbedRequest): Promise<{ readonly vectors: Float32Array[]; readonly inputTokens: number }>
  /** The most relevant first. */
  rerank(request: RerankRequest): Promise<RankedDocument[]>
  /** Reads an exported set: its path, or what the file holds. */
  set(file: string | Uint8Array): Promise<TaughtSet>
  /** Ends the thread; what is at work is refused with the code `closed`. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** In a browser there are no embeddings, and a set is what its file holds. */
export interface BrowserUmpire extends Omit<Umpire, "embed" | "set"> {
  set(file: Uint8Array): Promise<TaughtSet>
}

export interface BrowserLoadOptions {
  /** Address of `umpire-decide-small.onnx`, or of another encoder in one file; beside this module unless told. */
  readonly model?: string | URL
  /** Of the file, in hexadecimal; the shipped one's unless told. Null: it is neither checked nor kept. */
  readonly sha256?: string | null
  /** At most 4 unless told; always one where the page is not cross-origin isolated. */
  readonly threads?: number
}
