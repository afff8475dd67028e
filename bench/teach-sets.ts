/** Evaluation sets as rows to teach from: margins and vectors of the real engines, kept in .cache for the next run. */
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type EvalRow, readEvalSet } from "../src/cli/eval-rows.ts"
import { startEncoderEngine } from "../src/engine/encoder/engine.ts"
import { admitAny, type ScoreEngine } from "../src/engine/engine.ts"
import { LocalEngine } from "../src/engine/generate/local-engine.ts"
import { minilm } from "../src/engine/generate/minilm.ts"
import { decodeDecisions } from "../src/gateway/classification/wire.ts"
import { decodeFloats, encodeFloats } from "../src/scoring/teach/artefact.ts"
import {
  type QuestionKind,
  type TaughtQuestion,
  type TaughtRow,
  taughtVector,
} from "../src/scoring/teach/question.ts"
import { rowHash } from "../src/scoring/teach/row-hash.ts"

const cache = join(import.meta.dirname, "..", ".cache", "teach")
const { signal } = new AbortController()
/** Evidence longer than this is cut: it must fit the smallest context, and MiniLM's is smaller still. */
const charactersMax = 6_000
const minilmCharactersMax = 1_000
/** Rows that share runs of the encoder are read faster. */
const rowsAtOnce = 16
/** Kept together: a run that was stopped goes on from here. A row of 151 options takes seconds. */
const blockRows = 50

export interface TeachSet {
  readonly set: string
  readonly question: TaughtQuestion
  readonly rows: readonly TaughtRow[]
}

/** What an engine says of rows, as JSON. */
interface KeptRow {
  readonly margins: readonly number[]
  readonly vector: string
}

/** What it says of a set's question. */
interface KeptQuestion {
  readonly emptyMargins: readonly number[]
  readonly optionVectors: readonly string[]
}

/** What a model is asked. */
interface Reader {
  readRow(row: EvalRow): Promise<KeptRow>
  readQuestion(row: EvalRow): Promise<KeptQuestion>
  close(): Promise<void>
}

interface ReadOptions {
  readonly modelFile: string
  readonly withMinilm: boolean
}

export async function readTeachSet(
  folder: string,
  set: string,
  { modelFile, withMinilm }: ReadOptions,
): Promise<TeachSet> {
  const { rows } = await readEvalSet(join(folder, `${set}.jsonl`), set, Infinity)
  const read = await readAll(set, fileHash(modelFile), rows, async () => await openEncoder(modelFile))
  const sentences = withMinilm ? await readAll(set, "minilm", rows, openMinilm) : null
  const kind = rows[0]?.question.type ?? "choice"
  const vectorsOf = (pick: (all: AllRead) => readonly string[]): Float32Array[] =>
    joined(kind, pick(read), sentences ? pick(sentences) : null)
  const vectors = vectorsOf(({ read: all }) => all.map(({ vector }) => vector))
  return {
    set,
    question: {
      kind,
      options: rows[0]?.classes ?? [],
      optionVectors: kind === "predicate" ? null : vectorsOf(({ question }) => question.optionVectors),
      emptyMargins: read.question.emptyMargins,
    },
    rows: rows.map(({ text, classes, gold }, at) => ({
      hash: rowHash(text),
      split: "train",
      margins: read.read[at]?.margins ?? [],
      vector: vectors[at] ?? null,
      text,
      label: classes.indexOf(gold),
    })),
  }
}

/** Each with the other model's behind it. */
const joined = (
  kind: QuestionKind,
  texts: readonly string[],
  others: readonly string[] | null,
): Float32Array[] =>
  texts.map((text, at) =>
    Float32Array.from([...taughtVector(kind, decodeFloats(text)), ...decodeFloats(others?.[at] ?? "")]),
  )

export const fileHash = (file: string): string =>
  createHash("sha256").update(readFileSync(file)).digest("hex").slice(0, 16)

interface AllRead {
  readonly read: readonly KeptRow[]
  readonly question: KeptQuestion
}

/** The model is opened when something of the set is not kept yet. */
async function readAll(
  set: string,
  version: string,
  rows: readonly EvalRow[],
  open: () => Promise<Reader>,
): Promise<AllRead> {
  let opened: Reader | null = null
  const reader = async (): Promise<Reader> => (opened ??= await open())
  try {
    const read: KeptRow[] = []
    for (let from = 0; from < rows.length; from += blockRows) {
      const block = rows.slice(from, from + blockRows)
      const ask = async (): Promise<KeptRow[]> => await readBlock(await reader(), block)
      read.push(...(await keep(`${set}-${version}-${from}`, ask)))
    }
    const [first] = rows
    if (!first) throw new RangeError(`${set} has no rows`)
    const question = await keep(
      `${set}-${version}-question`,
      async () => await (await reader()).readQuestion(first),
    )
    return { read, question }
  } finally {
    await (opened as Reader | null)?.close()
  }
}

/** What is asked for once, as JSON. */
export async function keep<T>(name: string, ask: () => Promise<T>): Promise<T> {
  const file = join(cache, `${name}.json`)
  // Written below by an earlier run.
  if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8")) as T
  console.error(name)
  const kept = await ask()
  mkdirSync(cache, { recursive: true })
  writeFileSync(file, JSON.stringify(kept), { flush: true })
  return kept
}

async function readBlock(reader: Reader, rows: readonly EvalRow[]): Promise<KeptRow[]> {
  const read: KeptRow[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    for (let at = next++; at < rows.length; at = next++) read[at] = await reader.readRow(rows[at] as EvalRow)
  }
  await Promise.all(Array.from({ length: rowsAtOnce }, worker))
  return read
}

async function openEncoder(modelFile: string): Promise<Reader> {
  const engine = await startEncoderEngine({ modelFile })
  return {
    readRow: async ({ question, text }) => await askEncoder(engine, question, text),
    async readQuestion({ question, classes }) {
      const optionVectors: string[] = []
      for (const value of classes) {
        const { vector } = await engine.vector({ organizationId: "bench", evidence: cut(value) }, signal)
        optionVectors.push(encode(vector))
      }
      return { optionVectors, emptyMargins: (await askEncoder(engine, question, "-")).margins }
    },
    close: async () => await engine.close(),
  }
}

/** Margins and vector of one run, as a job of a set asks for them. */
async function askEncoder(
  engine: ScoreEngine,
  question: EvalRow["question"],
  text: string,
): Promise<KeptRow> {
  const body = JSON.stringify({ model: "bench", input: cut(text), questions: [question] })
  const { evidence, branches } = decodeDecisions(Buffer.from(body))
  const work = { organizationId: "bench", evidence, branches, reading: { vector: true } }
  const { margins, reading } = await engine.score(work, { signal, admit: admitAny })
  return { margins: [...margins], vector: encode(reading?.vector ?? new Float32Array()) }
}

const cut = (text: string): string => text.trim().slice(0, charactersMax)

const encode = (vector: Float32Array): string => encodeFloats(Float64Array.from(vector))

async function openMinilm(): Promise<Reader> {
  const engine = new LocalEngine({
    modelFile: minilm.file,
    kind: "embedding",
    memoryBytes: 64 * 1024 * 1024,
    waitingMax: rowsAtOnce,
    gpu: false,
  })
  const embed = async (text: string): Promise<string> => {
    const inputs = [text.trim().slice(0, minilmCharactersMax)]
    const { vectors } = await engine.embed({ inputs, dimensions: null }, { signal, admit: admitAny })
    return encode(vectors[0] ?? new Float32Array())
  }
  return {
    readRow: async ({ text }) => ({ margins: [], vector: await embed(text) }),
    async readQuestion({ classes }) {
      const optionVectors: string[] = []
      for (const value of classes) optionVectors.push(await embed(value))
      return { optionVectors, emptyMargins: [] }
    },
    close: async () => await engine.close(),
  }
}
