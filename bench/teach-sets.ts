/** Evaluation sets as rows to teach from: margins and vectors of the real engines, kept in .cache for the next run. */
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type EvalRow, readEvalSet } from "../src/cli/eval-rows.ts"
import { startEncoderEngine } from "../src/engine/encoder/engine.ts"
import type { ScoreEngine } from "../src/engine/engine.ts"
import { LocalEngine } from "../src/engine/generate/local-engine.ts"
import { ensureMinilm, minilmFile } from "../src/engine/generate/minilm.ts"
import { decodeDecisions } from "../src/gateway/classification/decode.ts"
import { decodeFloats, encodeFloats } from "../src/scoring/teach/artefact.ts"
import { type TaughtQuestion, type TaughtRow, rowHash } from "../src/scoring/teach/question.ts"

const cache = join(import.meta.dirname, "..", ".cache", "teach")
const { signal } = new AbortController()
/** Evidence longer than this is cut: it must fit the smallest context, and MiniLM's is smaller still. */
const charactersMax = 6_000
const minilmCharactersMax = 1_000

export interface TeachSet {
  readonly set: string
  readonly question: TaughtQuestion
  readonly rows: readonly TaughtRow[]
}

/** What an engine says of a set, as JSON. */
interface Kept {
  readonly margins: readonly (readonly number[])[]
  readonly emptyMargins: readonly number[]
  readonly vectors: readonly string[]
  readonly optionVectors: readonly string[]
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
  const read = await keep(set, fileHash(modelFile), async () => await askEncoder(rows, modelFile))
  const minilm = withMinilm ? await keep(set, "minilm", async () => await askMinilm(rows)) : null
  const kind = rows[0]?.question.type ?? "choice"
  const vectors = vectorsOf(read.vectors, minilm?.vectors)
  const optionVectors = vectorsOf(read.optionVectors, minilm?.optionVectors)
  return {
    set,
    question: {
      kind,
      options: rows[0]?.classes ?? [],
      optionVectors: kind === "predicate" ? null : optionVectors,
      emptyMargins: read.emptyMargins,
    },
    rows: rows.map(({ text, classes, gold }, at) => ({
      hash: rowHash(text),
      split: "train",
      margins: read.margins[at] ?? [],
      vector: vectors[at] ?? null,
      label: classes.indexOf(gold),
    })),
  }
}

/** Each with the other model's behind it. */
const vectorsOf = (texts: readonly string[], others: readonly string[] | undefined): Float32Array[] =>
  texts.map((text, at) => Float32Array.from([...decodeFloats(text), ...decodeFloats(others?.[at] ?? "")]))

const fileHash = (file: string): string =>
  createHash("sha256").update(readFileSync(file)).digest("hex").slice(0, 16)

async function keep(set: string, version: string, ask: () => Promise<Kept>): Promise<Kept> {
  const file = join(cache, `${set}-${version}.json`)
  // Written below by an earlier run.
  if (existsSync(file)) return JSON.parse(readFileSync(file, "utf8")) as Kept
  console.error(`${set}: asking ${version}`)
  const kept = await ask()
  mkdirSync(cache, { recursive: true })
  writeFileSync(file, JSON.stringify(kept))
  return kept
}

async function askEncoder(rows: readonly EvalRow[], modelFile: string): Promise<Kept> {
  const engine = await startEncoderEngine({ modelFile })
  try {
    const margins: number[][] = []
    const vectors: string[] = []
    for (const row of rows) {
      margins.push(await marginsOf(engine, row.question, row.text))
      vectors.push(encode(await vectorOf(row.text)))
    }
    const options: string[] = []
    for (const value of rows[0]?.classes ?? []) options.push(encode(await vectorOf(value)))
    const first = rows[0]
    const emptyMargins = first ? await marginsOf(engine, first.question, "-") : []
    return { margins, vectors, optionVectors: options, emptyMargins }
  } finally {
    await engine.close()
  }

  async function vectorOf(text: string): Promise<Float32Array> {
    return (await engine.vector({ organizationId: "bench", evidence: cut(text) }, signal)).vector
  }
}

async function marginsOf(
  engine: ScoreEngine,
  question: EvalRow["question"],
  text: string,
): Promise<number[]> {
  const body = JSON.stringify({ model: "bench", input: cut(text), questions: [question] })
  const { evidence, branches } = decodeDecisions(Buffer.from(body))
  const prepared = await engine.prepare({ organizationId: "bench", evidence, branches }, signal)
  return [...(await prepared.run(signal))]
}

const cut = (text: string): string => text.trim().slice(0, charactersMax)

const encode = (vector: Float32Array): string => encodeFloats(Float64Array.from(vector))

async function askMinilm(rows: readonly EvalRow[]): Promise<Kept> {
  const modelFile = minilmFile(cache)
  await ensureMinilm(modelFile)
  const engine = new LocalEngine({
    modelFile,
    kind: "embedding",
    memoryBytes: 64 * 1024 * 1024,
    waitingMax: 10,
    gpu: false,
  })
  try {
    const embed = async (text: string): Promise<string> => {
      const inputs = [text.trim().slice(0, minilmCharactersMax)]
      const prepared = await engine.prepareEmbedding({ inputs, dimensions: null }, signal)
      return encode((await prepared.run(signal))[0] ?? new Float32Array())
    }
    const vectors: string[] = []
    for (const { text } of rows) vectors.push(await embed(text))
    const optionVectors: string[] = []
    for (const value of rows[0]?.classes ?? []) optionVectors.push(await embed(value))
    return { margins: [], emptyMargins: [], vectors, optionVectors }
  } finally {
    await engine.close()
  }
}
