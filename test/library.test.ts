/** `import { load } from "umpire"`: the server's answers inside a program, without a server. */
import { execFile } from "node:child_process"
import {
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { promisify } from "node:util"
import { load, type RowResult, type Umpire, UmpireError } from "umpire"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type Client, createClient } from "../src/contract/client.ts"
import type { DecisionsResponse } from "../src/contract/decisions.ts"
import { browserTests } from "./library-browser.ts"
import { baseDecisionModelFile, decisionModelFile } from "./models.ts"
import { type TestServer, startServer } from "./server.ts"

const root = join(import.meta.dirname, "..")
const folder = mkdtempSync(join(tmpdir(), "umpire-library-"))
const model = "umpire-decide-small"

const questions = [
  { type: "predicate", name: "refund", instructions: "Does the customer ask for a refund?" },
  {
    type: "choice",
    name: "topic",
    instructions: "What is the complaint about?",
    choices: [{ value: "delivery" }, { value: "billing", description: "invoices and payments" }],
  },
  {
    type: "score",
    name: "anger",
    instructions: "How angry is the customer?",
    levels: [{ label: "calm" }, { label: "annoyed" }, { label: "furious" }],
  },
] as const
const texts: readonly [string, string, string] = [
  "The parcel arrived two weeks late and the box was crushed. I want my money back.",
  "I was charged twice for one order. Please correct the invoice.",
  "Thanks, all is well. ".repeat(80),
]

async function* failing(): AsyncGenerator<string> {
  yield await Promise.resolve(texts[0])
  throw new Error("the file cannot be read")
}

const codeOf = async (work: Promise<unknown>): Promise<unknown> =>
  await work.then(
    () => null,
    (error: unknown) => (error instanceof UmpireError ? error.code : error),
  )

let umpire: Umpire
let server: TestServer

beforeAll(async () => {
  ;[umpire, server] = await Promise.all([load({ model }), startServer()])
})
afterAll(async () => {
  await Promise.all([umpire.close(), server.stop()])
  rmSync(folder, { recursive: true, force: true })
})

/** Of the server, under their names. */
async function serverAnswers(input: string): Promise<Record<string, unknown>> {
  const response = await server.post("/v1/decisions", { model: "umpire-decide", input, questions })
  const { answers } = (await response.json()) as DecisionsResponse
  return Object.fromEntries(answers.map(({ name, ...answer }) => [name, answer]))
}

test("answers are the server's to the last bit, one at a time and many at once", async () => {
  const expected = await Promise.all(texts.map(serverAnswers))
  for (const [at, input] of texts.entries())
    expect((await umpire.decide({ input, questions })).answers).toEqual(expected[at])
  const many: unknown[] = []
  for await (const row of umpire.decideMany(texts, questions)) many.push(row.error ?? row.answers)
  expect(many).toEqual(expected)
})

test("names, choices and levels are literal types of the answers", async () => {
  const { answers } = await umpire.decide({
    input: "The invoice is wrong.",
    questions: [
      {
        type: "choice",
        name: "topic",
        instructions: "What is it about?",
        choices: [{ value: "delivery" }, { value: "billing" }],
      },
      { type: "predicate", name: "refund", instructions: "Is money asked back?" },
    ],
  })
  const choice: "delivery" | "billing" = answers.topic.choice
  const probability: number = answers.refund.probability
  // @ts-expect-error -- nothing of this name is asked
  expect(answers.other).toBeUndefined()
  // @ts-expect-error -- no such option
  expect(choice === "returns").toBe(false)
  expect(["delivery", "billing"]).toContain(choice)
  expect(probability).toBeGreaterThan(0)
})

test("of many rows no more are taken than are at work, and a row that is refused has its error", async () => {
  let taken = 0
  let given = 0
  const ahead: number[] = []
  function* rows(): Generator<{ readonly id: number; readonly input: string }> {
    for (let id = 0; id < 12; id++) {
      taken++
      ahead.push(taken - given)
      yield { id, input: id === 5 ? " " : `Order ${id} is late.` }
    }
  }
  const results: RowResult<{ readonly id: number }, typeof questions>[] = []
  for await (const result of umpire.decideMany(rows(), questions, { concurrency: 3 })) {
    given++
    results.push(result)
  }
  expect(Math.max(...ahead)).toBe(3)
  expect(results.map(({ row }) => row.id)).toEqual(Array.from({ length: 12 }, (_, id) => id))
  expect(results.flatMap(({ error, row }) => (error ? [[row.id, error.code]] : []))).toEqual([
    [5, "input_blank"],
  ])
  await expect(umpire.decideMany([], questions, { concurrency: 0 }).next()).rejects.toMatchObject({
    code: "invalid_request",
  })
})

test("rows are let go of where the loop ends early or the source fails", async () => {
  let isClosed = false
  function* rows(): Generator<string> {
    try {
      while (true) yield texts[0]
    } finally {
      isClosed = true
    }
  }
  for await (const { error } of umpire.decideMany(rows(), questions)) {
    expect(error).toBeNull()
    break
  }
  expect(isClosed).toBe(true)
  await expect(umpire.decideMany(failing(), questions).next()).rejects.toThrow("cannot be read")
})

const client = (): Client => createClient(server.url, { authorization: `Bearer ${server.key}` })
const setParams = async () => ({
  org_id: (await client().listOrganizations())[0]?.id ?? "",
  set_id: "refunds",
})
let exported: Promise<string> | undefined

/** The file of a set that was taught on the server. */
async function exportTaughtSet(): Promise<string> {
  const params = await setParams()
  await client().createQuestionSet({
    params,
    body: {
      name: "refunds",
      model: "umpire-decide",
      questions: [{ type: "predicate", name: "refund", instructions: "Does it fit the code R4?" }],
    },
  })
  const rows = Array.from({ length: 20 }, (_, n) => ({
    input: n % 2 === 0 ? `Refund order ${n}, please.` : `Thanks for order ${n}.`,
    labels: { refund: n % 2 === 0 },
  }))
  await client().addQuestionSetExamples({ params, body: { rows } })
  const { id } = await client().teachQuestionSet({ params, body: {} })
  await expect
    .poll(async () => (await client().getQuestionSetJob({ params: { ...params, job_id: id } })).state)
    .toBe("succeeded")

  const file = join(folder, "refunds.umpire")
  const env = { PATH: process.env["PATH"] ?? "", UMPIRE_URL: server.url, UMPIRE_API_KEY: server.key }
  const command = [join(root, "bin", "umpire.js"), "sets", "export", "refunds", "--version", "2", "-o", file]
  await promisify(execFile)(process.execPath, command, { env })
  return file
}

const taughtSet = async (): Promise<string> => await (exported ??= exportTaughtSet())

const setTexts = ["I want my money back for order 7.", "Thanks for order 99.", texts[1]]

/** What the server answers of each, as the library would. */
async function serverVerdicts(): Promise<unknown[]> {
  const params = await setParams()
  return await Promise.all(
    setTexts.map(async (input) => {
      const { answers } = await client().decideQuestionSet({ params, body: { input, version: "2" } })
      const [first] = answers
      if (!first) throw new Error("The set answers nothing")
      const { confidence, taught, answer } = first
      const { name: _, ...plain } = answer
      return { verdicts: { refund: { confidence, taught } }, answers: { refund: plain } }
    }),
  )
}

test("a set that was taught and exported answers as it does on the server", async () => {
  const file = await taughtSet()
  const set = await umpire.set(file)
  expect(set).toMatchObject({ name: "refunds", version: 2 })
  const own = await Promise.all(setTexts.map(async (input) => await set.decide({ input })))
  expect(own).toMatchObject(await serverVerdicts())
  expect(own.every(({ verdicts }) => verdicts["refund"]?.taught)).toBe(true)

  const written = JSON.parse(readFileSync(file, "utf8")) as { artefacts: string[] }
  const refused = async (changed: object): Promise<unknown> =>
    await umpire.set(Buffer.from(JSON.stringify(changed))).catch((error: unknown) => error)
  const [artefact = ""] = written.artefacts
  expect(await refused({ ...written, artefacts: [] })).toMatchObject({ code: "invalid_body" })
  expect(await refused({ ...written, artefacts: [artefact.replace(/\d/, "7")] })).toMatchObject({
    message: expect.stringContaining("was changed"),
  })
  await expect(umpire.set(Buffer.from("{"))).rejects.toMatchObject({ code: "invalid_body" })
  await expect(umpire.set(join(folder, "absent.umpire"))).rejects.toMatchObject({ code: "ENOENT" })
  const base = await load({ model: "umpire-decide" })
  await expect(base.set(file)).rejects.toThrow(/it was taught on .+, and the model here is/)
  await base.close()
})

test("documents are ranked, and texts embedded, as the server does", async () => {
  const query = "How long do refunds take?"
  const documents = ["Our office is in Bremen.", "Refunds are paid within 14 days.", "Call us on Mondays."]
  const reranked = await server.post("/v1/rerank", { model: "umpire-decide", query, documents })
  const { results } = (await reranked.json()) as { results: { index: number; relevance_score: number }[] }
  expect(await umpire.rerank({ query, documents, count: 2 })).toEqual(
    results.slice(0, 2).map(({ index, relevance_score: relevance }) => ({ index, relevance })),
  )
  const embedded = await server.post("/v1/embeddings", { model: "all-minilm-l6-v2", input: documents })
  const { data } = (await embedded.json()) as { data: { embedding: number[] }[] }
  const { vectors } = await umpire.embed({ inputs: documents })
  expect(vectors).toEqual(data.map(({ embedding }) => Float32Array.from(embedding)))
})

test("each mistake has a code and a sentence", async () => {
  const noModel = join(folder, "none.onnx")
  writeFileSync(noModel, "this is text")
  expect(await codeOf(load({ model: noModel }))).toBe("unknown_model")
  expect(await codeOf(load({ model: "absent" }))).toBe("unknown_model")
  const cut = join(folder, "cut.onnx")
  writeFileSync(cut, readFileSync(decisionModelFile).subarray(0, 9_000_000))
  await expect(load({ model: cut })).rejects.toMatchObject({
    code: "unknown_model",
    message: expect.stringContaining("is truncated"),
  })
  const embedding = join(root, "model", "all-minilm-l6-v2.onnx")
  await expect(load({ model: embedding })).rejects.toMatchObject({
    code: "unknown_model",
    message: expect.stringContaining("not one of an Umpire encoder"),
  })
  // Weights of the right length and another hash.
  const changed = join(folder, "umpire-decide.onnx")
  symlinkSync(baseDecisionModelFile, changed)
  const weights = join(folder, "umpire-decide.weights")
  writeFileSync(weights, "")
  truncateSync(weights, statSync(baseDecisionModelFile.replace(/onnx$/, "weights")).size)
  await expect(load({ model: changed })).rejects.toMatchObject({
    code: "unknown_model",
    message: expect.stringContaining("is not the file that"),
  })
  expect(await codeOf(umpire.decide({ input: "word ".repeat(300_000), questions }))).toBe(
    "context_length_exceeded",
  )
  const options = [{ value: "a" }, { value: "a" }]
  const doubled = { type: "choice", name: "q", instructions: "Which?", choices: options } as const
  expect(await codeOf(umpire.decide({ input: "a", questions: [doubled] }))).toBe("duplicate_choice")
  const [refund, , anger] = questions
  const twice = [refund, { ...anger, name: "refund" }]
  expect(await codeOf(umpire.decide({ input: "a", questions: twice }))).toBe("invalid_request")
  const reason = new Error("enough")
  await expect(umpire.decide({ input: texts[0], questions, signal: AbortSignal.abort(reason) })).rejects.toBe(
    reason,
  )
})

test("a closed one refuses what is at work and all that comes, and closes again", async () => {
  const other = await load({ model })
  const atWork = other.decide({ input: texts[2], questions })
  const refusal = expect(atWork).rejects.toMatchObject({ code: "closed" })
  await other.close()
  await refusal
  await expect(other.decide({ input: "Hello.", questions })).rejects.toMatchObject({ code: "closed" })
  await other.close()
})

browserTests({ server: () => server, taughtSet, setTexts, serverVerdicts })

/** Prints what each thread of a program loads. */
const reporter = `
import { registerHooks } from "node:module"
import { writeSync } from "node:fs"
registerHooks({ load: (url, context, next) => (writeSync(2, url + "\\n"), next(url, context)) })
`

test("a program ends by itself; no store, server, console or database was loaded", async () => {
  const hook = join(folder, "report.mjs")
  const program = join(folder, "program.mjs")
  writeFileSync(hook, reporter)
  writeFileSync(
    program,
    `import { load } from ${JSON.stringify(pathToFileURL(join(root, "src", "library", "index.ts")).href)}
const umpire = await load({ model: ${JSON.stringify(model)} })
const { answers } = await umpire.decide({ input: "Please refund me.", questions: ${JSON.stringify(questions)} })
console.log(answers.topic.choice)`,
  )
  const args = ["--import", pathToFileURL(hook).href, program]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { maxBuffer: 16_777_216 })
  expect(stdout).toMatch(/^(delivery|billing)\n$/)
  const loaded = stderr.split("\n").filter((line) => line.startsWith("file:"))
  expect(loaded.filter((url) => url.includes("/src/engine/encoder/graph-thread.ts"))).toHaveLength(1)
  const foreign =
    /\/src\/(?:store|control|server|cli|main)\/|node_modules\/(?:pg|undici|@electric-sql|@duckdb|ws)\//
  expect(loaded.filter((url) => foreign.test(url))).toEqual([])
})
