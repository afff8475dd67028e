/**
 * Cascades beside their members, through a running server: `npm run bench cascade -- [options]`. The small model is `umpire-decide`.
 * There are two large ones: `umpire-chat`, and another.
 *
 *   --rows=N             the first rows of each set of ../shared/eval (default 8, some minutes); sets of many options get an eighth
 *   --large=FILE         a .gguf or .onnx file as the other large model
 *   --large-accuracy=P   without a file, it is a script that knows the answers and is right this often (default 0.9)
 *   --large-ms=N         how long the script takes (default 60)
 *
 * The script shows what a cascade makes of a large model of a given accuracy and speed; it says nothing about any real one. Fails
 * where an answer that is not sent on differs from that of the small model alone. Writes bench/out/cascade-MODEL.svg and cascade.json.
 */
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { ticksOfUsd } from "../src/base/money.ts"
import { type EvalRow, readEvalSet } from "../src/cli/eval-rows.ts"
import { drawTable } from "../src/cli/table.ts"
import { createClient } from "../src/contract/client.ts"
import type { DecisionAnswer } from "../src/contract/decisions.ts"
import { type TestServer, startServer } from "../test/server.ts"
import { type CascadePoint, drawCascade } from "./cascade-plot.ts"
import { listSets } from "./evaluation-rows.ts"

const root = join(import.meta.dirname, "..")
const folder = join(root, "..", "shared", "eval")
const optionsMany = 20
/** Evidence longer than this is cut: most texts that are decided about are short. */
const charactersMax = 1_500
const thresholds = [0.6, 0.7, 0.8, 0.9, 0.95]
const small = "umpire-decide"
const larges = ["umpire-chat", "large"]
const largePrice = "0.4"

const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "8" },
    large: { type: "string" },
    "large-accuracy": { type: "string", default: "0.9" },
    "large-ms": { type: "string", default: "60" },
  },
})
const head = ["model", "accuracy", "escalated", "1000 questions", "median ms", "mean ms", "95 % ms"]
if (!existsSync(folder)) {
  console.log("The labelled sets are not on this machine")
  process.exit(0)
}

const rows = await readRows()
/** What the script knows, by text and question. */
const known = new Map(rows.map((row) => [keyOf(textOf(row), row.question.instructions), row]))
const worker = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const body = request.method === "GET" ? {} : answerAll(Buffer.concat(chunks).toString())
    const delayMs = request.method === "GET" ? 0 : Number(values["large-ms"])
    setTimeout(() => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body))
    }, delayMs)
  })
})
await new Promise<void>((done) => worker.listen(0, "127.0.0.1", done))
const temporary = mkdtempSync(join(tmpdir(), "umpire-cascade-"))
writeFileSync(join(temporary, "umpire.yaml"), JSON.stringify({ models: [largeModel()] }))
const server = await startServer({
  env: {
    UMPIRE_CONFIG: join(temporary, "umpire.yaml"),
    UMPIRE_LIMITS_REQUESTS_PER_MINUTE: "1000000",
    // Every variant is asked the same texts: none may profit from those before it.
    UMPIRE_ENGINE_CACHE_MEMORY_MIB: "0",
  },
})
try {
  const measured = await measure(server)
  const out = join(root, "bench", "out")
  mkdirSync(out, { recursive: true })
  for (const { large, points } of measured) {
    console.log(drawTable(head, points.map(cellsOf)))
    writeFileSync(join(out, `cascade-${large}.svg`), drawCascade(points))
  }
  writeFileSync(join(out, "cascade.json"), `${JSON.stringify({ rows: rows.length, measured }, null, 2)}\n`)
} finally {
  await server.stop()
  worker.closeAllConnections()
  worker.close()
  rmSync(temporary, { recursive: true, force: true })
}

function cellsOf(one: CascadePoint): string[] {
  return [
    one.name,
    one.accuracy.toFixed(3),
    `${(100 * one.escalated).toFixed(1)} %`,
    `$${one.usdPerThousand.toFixed(4)}`,
    one.medianMs.toFixed(1),
    one.meanMs.toFixed(1),
    one.p95Ms.toFixed(1),
  ]
}

async function readRows(): Promise<EvalRow[]> {
  const sets = listSets(folder).map(async (set) => {
    const { rows: all } = await readEvalSet(join(folder, `${set}.jsonl`), set, Infinity)
    const isMany = (all[0]?.classes.length ?? 0) > optionsMany
    return all.slice(0, isMany ? Math.ceil(Number(values.rows) / 8) : Number(values.rows))
  })
  return (await Promise.all(sets)).flat()
}

function textOf({ text }: EvalRow): string {
  return text.trim().slice(0, charactersMax)
}

function keyOf(text: string, instructions: string): string {
  return `${text}\0${instructions}`
}

function largeModel(): object {
  const price = { price_m_input_tokens_usd: largePrice }
  if (values.large !== undefined) return { sku: "large", file: resolve(values.large), ...price }
  const url = `http://127.0.0.1:${(worker.address() as AddressInfo).port}`
  return { sku: "large", context_tokens_max: 32_768, ...price, workers: [{ url, dialect: "systemone" }] }
}

interface WorkerRequest {
  readonly state: string
  readonly questions: Readonly<
    Record<string, { readonly type: string; readonly instructions: string; readonly criteria?: object }>
  >
}

/** Sure of the right answer, or as sure of a wrong one: which of both depends on the text alone. */
function answerAll(body: string): object {
  const { state, questions } = JSON.parse(body) as WorkerRequest
  const answers = Object.entries(questions).map(([id, { type, instructions, criteria = {} }]) => {
    const row = known.get(keyOf(state, instructions))
    const chance = createHash("sha256").update(keyOf(state, instructions)).digest().readUInt32BE() / 2 ** 32
    const isRight = chance < Number(values["large-accuracy"])
    if (type === "noul") return [id, { type, noul: (row?.gold === "yes") === isRight ? 0.97 : 0.03 }]
    const names = Object.keys(criteria)
    const right = names.indexOf(row?.gold ?? "")
    const chosen = isRight ? right : (right + 1) % names.length
    const share = 0.03 / Math.max(1, names.length - 1)
    const each = names.map((name, at) => [name, at === chosen ? 0.97 : share])
    return [id, { type, probabilities: Object.fromEntries(each) as object }]
  })
  // About four characters a token.
  return {
    answers: Object.fromEntries(answers) as object,
    usage: { input_tokens: Math.ceil(body.length / 4), output_tokens: 0 },
  }
}

interface Measured {
  readonly large: string
  /** The small model, cascades from the least threshold up, the large model. */
  readonly points: readonly CascadePoint[]
}

async function measure({ url, key }: TestServer): Promise<Measured[]> {
  const client = createClient(url, { authorization: `Bearer ${key}` })
  const org_id = (await client.listOrganizations())[0]?.id ?? ""
  const run = async (name: string, large: string): Promise<Variant> => {
    // Models are loaded and the paths are warm before anything is measured.
    for (const row of rows.slice(0, 3)) await ask(url, key, { name, large, tag: "warm" }, row)
    const asked: Asked[] = []
    for (const row of rows) asked.push(await ask(url, key, { name, large, tag: name }, row))
    const point = pointOf(name, asked, await costOf(url, key, org_id, name))
    console.error(name, point.accuracy.toFixed(3))
    return { asked, point }
  }
  const alone = await run(small, "")
  const measured: Measured[] = []
  for (const large of larges) {
    const points = [alone.point]
    for (const threshold of thresholds) {
      const name = `cascade-${large}-${threshold}`
      const each = { predicate: threshold, choice: threshold, score: threshold }
      const cascade = {
        models: [small, large],
        thresholds: each,
        on_failure: "error" as const,
        cost_max_usd: null,
        latency_max_ms: null,
      }
      await client.createVirtualModel({ params: { org_id }, body: { name, cascade } })
      const { asked, point } = await run(name, large)
      refuseChanged(name, asked, alone.asked)
      points.push(point)
    }
    points.push((await run(large, large)).point)
    measured.push({ large, points })
  }
  return measured
}

interface Variant {
  readonly asked: readonly Asked[]
  readonly point: CascadePoint
}

function pointOf(name: string, asked: readonly Asked[], ticks: bigint): CascadePoint {
  const times = asked.map(({ ms }) => ms).toSorted((a, b) => a - b)
  const share = (of: (one: Asked) => boolean): number => asked.filter(of).length / asked.length
  return {
    name,
    accuracy: share(({ isRight }) => isRight),
    escalated: share(({ isEscalated }) => isEscalated),
    usdPerThousand: (Number(ticks) / 1e10 / asked.length) * 1000,
    medianMs: times[Math.floor(times.length / 2)] ?? 0,
    meanMs: times.reduce((sum, ms) => sum + ms, 0) / times.length,
    p95Ms: times[Math.floor(times.length * 0.95)] ?? 0,
  }
}

/** What the small model is sure of is answered as by the small model alone, to the bit. */
function refuseChanged(name: string, asked: readonly Asked[], alone: readonly Asked[]): void {
  const changed = asked.filter(
    ({ isEscalated, answer }, at) =>
      !isEscalated && JSON.stringify(answer) !== JSON.stringify(alone[at]?.answer),
  )
  const sure = asked.filter(({ isEscalated }) => !isEscalated).length
  if (changed.length > 0)
    throw new Error(
      `${name}: ${changed.length} of ${sure} answers that were not sent on differ from ${small}'s`,
    )
  console.error(`${name}: ${sure} answers that were not sent on are ${small}'s, to the bit`)
}

interface Asked {
  readonly answer: DecisionAnswer | undefined
  readonly isRight: boolean
  readonly isEscalated: boolean
  readonly ms: number
}

interface AskedModel {
  readonly name: string
  readonly large: string
  readonly tag: string
}

async function ask(url: string, key: string, { name, large, tag }: AskedModel, row: EvalRow): Promise<Asked> {
  const startedMs = performance.now()
  const response = await fetch(`${url}/v1/decisions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "x-umpire-tags": `variant=${tag}`,
    },
    body: JSON.stringify({ model: name, input: textOf(row), questions: [row.question] }),
  })
  const body = (await response.json()) as { answers: DecisionAnswer[] }
  const ms = performance.now() - startedMs
  if (!response.ok) throw new Error(`${name} answered ${response.status}: ${JSON.stringify(body)}`)
  const [answer] = body.answers
  return {
    answer,
    isRight: answer !== undefined && likeliest(answer) === row.gold,
    isEscalated: response.headers.get("x-umpire-stages")?.includes(`, ${large};`) ?? name === large,
    ms,
  }
}

function likeliest(answer: DecisionAnswer): string {
  if (answer.type === "predicate") return answer.probability >= 0.5 ? "yes" : "no"
  if (answer.type === "choice") return String(answer.choice)
  if (answer.type === "refusal") return ""
  return answer.probabilities.toSorted((a, b) => b.probability - a.probability)[0]?.label ?? ""
}

/** What the records of a variant say that it cost. */
async function costOf(url: string, key: string, organization: string, variant: string): Promise<bigint> {
  let sum = 0n
  let cursor: string | null = null
  do {
    const after: string = cursor === null ? "" : `&cursor=${cursor}`
    const response = await fetch(
      `${url}/v1/organizations/${organization}/sequences?limit=200&tag=variant=${variant}${after}`,
      { headers: { authorization: `Bearer ${key}` } },
    )
    const page = (await response.json()) as { data: { cost: string }[]; next_cursor: string | null }
    for (const { cost } of page.data) sum += ticksOfUsd(cost)
    cursor = page.next_cursor
  } while (cursor !== null)
  return sum
}
