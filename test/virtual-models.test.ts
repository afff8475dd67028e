/** Virtual models on a running server: aliases, fallbacks, splits and cascades, with members that are down, slow, full of text or too dear. */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { type Server, type ServerResponse, createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { OverviewResponse } from "../src/contract/analytics.ts"
import type { UsageSpend } from "../src/contract/billing.ts"
import type { SequenceDetail } from "../src/contract/sequences.ts"
import { ticksOfUsd, ticksPerUsd } from "../src/base/money.ts"
import { type TestServer, startServer } from "./server.ts"

/** The discard port: nothing listens there. */
const nobody = "http://127.0.0.1:9"
const largeTokens = 42
const ticksPerCent = 1e8

function answer(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value))
}

/** A large model that is always sure of yes; what its path says goes wrong. */
class LargeWorker {
  readonly asked: string[][] = []
  readonly #server: Server

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on("data", (chunk: Buffer) => chunks.push(chunk))
      request.on("end", () => {
        const path = request.url ?? ""
        if (request.method === "GET") return answer(response, {})
        if (path.startsWith("/slow")) return undefined
        if (path.startsWith("/short"))
          return answer(response, { error: { message: "maximum context length" } }, 400)
        const { state, questions } = JSON.parse(Buffer.concat(chunks).toString()) as {
          state: string
          questions: Record<string, { instructions: string }>
        }
        // Before its first decision a worker is asked whether it answers.
        if (state !== "The sky is blue today.")
          this.asked.push(Object.values(questions).map(({ instructions }) => instructions))
        const answers = Object.keys(questions).map((name) => [name, { type: "noul", noul: 0.999 }])
        answer(response, {
          answers: Object.fromEntries(answers),
          usage: { input_tokens: largeTokens, output_tokens: 0 },
        })
      })
    })
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve))
    // True for a TCP server that listens.
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

let folder: string
let server: TestServer
let models: string
let organization: string
const large = new LargeWorker()
const mortal = new LargeWorker()

const entry = (sku: string, url: string, price: string, dialect = "systemone") => ({
  sku,
  context_tokens_max: 4096,
  price_m_input_tokens_usd: price,
  workers: [{ url, dialect }],
})

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "umpire-virtual-"))
  const at = await large.listen()
  const config = join(folder, "umpire.yaml")
  // JSON is YAML.
  writeFileSync(
    config,
    JSON.stringify({
      // Only the slow one is to be too slow, though this process, which is the workers, may pause.
      routing: { attempt_timeout_ms: 20_000 },
      models: [
        entry("large", at, "1"),
        entry("down", nobody, "1"),
        entry("slow", `${at}/slow`, "1"),
        entry("short", `${at}/short`, "1"),
        entry("dear", at, "1000"),
        entry("mortal", await mortal.listen(), "1"),
        entry("silent", nobody, "1", "openai"),
        { sku: "everyones", alias: "umpire-decide" },
      ],
    }),
  )
  server = await startServer({ env: { UMPIRE_CONFIG: config } })
  const { data } = await get<{ data: { id: string }[] }>("/v1/organizations")
  organization = data[0]?.id ?? ""
  models = `/v1/organizations/${organization}/models`
})

afterAll(async () => {
  await server.stop()
  await large.close()
  await mortal.close()
  rmSync(folder, { recursive: true, force: true })
})

async function get<Body>(path: string): Promise<Body> {
  const headers = { authorization: `Bearer ${server.key}` }
  return (await (await fetch(server.url + path, { headers })).json()) as Body
}

async function send(method: string, path: string, body?: unknown): Promise<[number, string]> {
  const response = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const { data, error } = (text === "" ? {} : JSON.parse(text)) as {
    data?: { id: string }
    error?: { code: string }
  }
  return [response.status, error?.code ?? data?.id ?? ""]
}

const create = async (name: string, rule: object): Promise<string> => {
  const [status, id] = await send("POST", models, { name, ...rule })
  expect(status, id).toBe(200)
  return id
}

const input = "The parcel came two weeks late, and the box was open."
const instructions = ["Is the parcel late?", "Was the customer given a refund?", "Is the sky blue?"]
const questions = instructions.map((one, at) => ({ type: "predicate", name: `q${at}`, instructions: one }))

interface Asked {
  readonly status: number
  readonly answers: readonly { readonly probability: number }[]
  readonly tokens: number
  readonly code: string | undefined
  readonly stages: string | null
  readonly warning: string | null
  readonly sequence: string
}

async function ask(model: string, headers: Record<string, string> = {}): Promise<Asked> {
  const response = await server.post("/v1/decisions", { model, input, questions }, headers)
  const body = (await response.json()) as {
    answers?: { probability: number }[]
    usage?: { input_tokens: number }
    error?: { code: string }
  }
  return {
    status: response.status,
    answers: body.answers ?? [],
    tokens: body.usage?.input_tokens ?? 0,
    code: body.error?.code,
    stages: response.headers.get("x-umpire-stages"),
    warning: response.headers.get("x-umpire-warning"),
    sequence: response.headers.get("x-umpire-sequence") ?? "",
  }
}

const recordOf = async (id: string): Promise<SequenceDetail> => {
  const path = `/v1/organizations/${organization}/sequences/${id}`
  await expect.poll(async () => (await get<{ data?: object }>(path)).data).toBeDefined()
  return (await get<{ data: SequenceDetail }>(path)).data
}

test("an alias is used with the next request, is changed while the server runs, and is gone when deleted", async () => {
  const id = await create("mine", { alias: "umpire-decide" })
  const alone = await ask("umpire-decide")
  expect(await ask("mine")).toMatchObject({ status: 200, answers: alone.answers, tokens: alone.tokens })
  expect(await ask("everyones")).toMatchObject({ status: 200, answers: alone.answers })
  expect(await send("PATCH", `${models}/${id}`, { alias: "large" })).toEqual([200, id])
  expect((await ask("mine")).answers[0]?.probability).toBeCloseTo(0.999)
  const listed = await get<{ data: { id: string }[] }>("/v1/models")
  expect(listed.data.map((one) => one.id)).toEqual(expect.arrayContaining(["mine", "everyones"]))
  expect(await send("DELETE", `${models}/${id}`)).toEqual([204, ""])
  expect(await ask("mine")).toMatchObject({ status: 422, code: "unknown_model" })
  const audited = await get<{ data: { action: string; resource: { id: string } }[] }>(
    `/v1/organizations/${organization}/audit_log`,
  )
  const actions = audited.data.filter(({ resource }) => resource.id === id).map(({ action }) => action)
  expect(actions).toEqual(["virtual_model.delete", "virtual_model.update", "virtual_model.create"])
})

const umpire = async (...line: string[]): Promise<string> => {
  const env = { PATH: process.env["PATH"], UMPIRE_DATA_DIR: server.dataDirectory }
  const bin = join(import.meta.dirname, "..", "bin", "umpire.js")
  return (await promisify(execFile)(process.execPath, [bin, "models", ...line], { env })).stdout
}

test("the operator makes, changes, lists and removes one at the command line", async () => {
  expect(await umpire("alias", "ops", "large")).toBe("ops is an alias of large.\n")
  expect(await umpire("fallback", "ops", "umpire-decide", "large")).toBe(
    "ops is a fallback: umpire-decide, then large.\n",
  )
  expect(await ask("ops")).toMatchObject({ status: 200, stages: expect.stringMatching(/^umpire-decide;/) })
  expect(await umpire("language", "ops", "de,fr=large", "umpire-decide")).toBe(
    "ops is a choice by language: de,fr=large, umpire-decide.\n",
  )
  expect(await ask("ops")).toMatchObject({ status: 200, stages: expect.stringMatching(/^umpire-decide;/) })
  expect(await umpire("virtual")).toContain("ops")
  expect(await umpire("remove", "ops")).toBe("ops is removed.\n")
  expect(await ask("ops")).toMatchObject({ status: 422, code: "unknown_model" })
})

test("what could never answer is refused when it is saved", async () => {
  const first = await create("first", { alias: "umpire-decide" })
  await create("second", { fallback: ["first", "large"] })
  expect(await send("PATCH", `${models}/${first}`, { alias: "second" })).toEqual([422, "invalid_body"])
  expect(await send("DELETE", `${models}/${first}`)).toEqual([409, "conflict"])
  expect(await send("POST", models, { name: "third", alias: "none" })).toEqual([422, "invalid_body"])
  expect(await send("POST", models, { name: "third" })).toEqual([422, "invalid_body"])
  expect(await send("POST", models, { name: "large", alias: "umpire-decide" })).toEqual([409, "conflict"])
  const vectors = { fallback: ["umpire-decide", "all-minilm-l6-v2"] }
  expect(await send("POST", models, { name: "third", ...vectors })).toEqual([422, "invalid_body"])
  const cascade = { models: ["umpire-decide", "all-minilm-l6-v2"] }
  expect(await send("POST", models, { name: "third", cascade })).toEqual([422, "invalid_body"])
})

async function askIn(
  text: string,
  model: string,
  asked: object = questions,
): Promise<(string | null | undefined)[]> {
  const response = await server.post("/v1/decisions", { model, input: text, questions: asked })
  expect(response.status).toBe(200)
  const stages = response.headers.get("x-umpire-stages") ?? ""
  return [response.headers.get("x-umpire-language"), stages.split(";")[0]]
}

const saveRoutes = async (...routes: object[]) =>
  await send("POST", models, { name: "third", language: { routes, otherwise: "large" } })

describe("a choice by language", () => {
  const german = "Das Paket kam zwei Wochen zu spät, und der Karton war schon offen."
  test("asks the model of the text's language, and the other one of every other", async () => {
    await create("decide", {
      language: { routes: [{ languages: ["en", "unknown"], model: "umpire-decide" }], otherwise: "large" },
    })
    expect(await askIn(input, "decide")).toEqual(["en", "umpire-decide"])
    expect(await askIn(german, "decide")).toEqual(["de", "large"])
    expect(await askIn("注文した商品がまだ届きません。", "decide")).toEqual(["ja", "large"])
    expect(await askIn("INV-2231", "decide")).toEqual(["unknown", "umpire-decide"])
    expect(await askIn(german, "umpire-decide")).toEqual(["de", ""])
  })

  test("asks by the language of the questions where the text is in English or in none", async () => {
    const inGerman = [
      { type: "predicate", name: "late", instructions: "Ist die Lieferung zu spät angekommen?" },
    ]
    const inEnglish = [{ type: "predicate", name: "late", instructions: "Did the delivery arrive too late?" }]
    expect(await askIn(input, "decide", inGerman)).toEqual(["en", "large"])
    expect(await askIn("INV-2231", "decide", inGerman)).toEqual(["unknown", "large"])
    expect(await askIn("INV-2231", "decide", inEnglish)).toEqual(["unknown", "umpire-decide"])
    expect(await askIn(german, "decide", inEnglish)).toEqual(["de", "large"])
    const foreign = await server.post("/v1/decisions", { model: "umpire-decide", input, questions: inGerman })
    expect(foreign.headers.get("x-umpire-warning")).toBe("language")
    const own = await server.post("/v1/decisions", { model: "umpire-decide", input, questions: inEnglish })
    expect(own.headers.get("x-umpire-warning")).toBeNull()
  })

  test("holds for a question set, and for a chat by what the user said last", async () => {
    const sets = `/v1/organizations/${organization}/question_sets`
    await create("by-language", {
      language: { routes: [{ languages: ["en"], model: "umpire-decide" }], otherwise: "large" },
    })
    const content = { model: "by-language", questions }
    expect((await send("POST", sets, { name: "mail", ...content }))[0]).toBe(200)
    const decided = await server.post("/v1/decisions", { model: "set:mail", input: german, questions: [] })
    expect(decided.headers.get("x-umpire-stages")).toMatch(/^large;result=success;questions=3;/)
    expect(decided.headers.get("x-umpire-language")).toBe("de")
    await create("talk", {
      language: { routes: [{ languages: ["de"], model: "silent" }], otherwise: "smollm2-135m-instruct" },
    })
    const messages = [
      { role: "user", content: german },
      { role: "assistant", content: "Ja." },
      { role: "user", content: "Please tell me in English what has happened." },
    ]
    const chat = await server.post("/v1/chat/completions", { model: "talk", max_tokens: 1, messages })
    expect([chat.status, chat.headers.get("x-umpire-language")]).toEqual([200, "en"])
    expect(chat.headers.get("x-umpire-stages")).toBe("smollm2-135m-instruct")
  })

  test("is refused with a tag that no text is found to be in, or a language in two places", async () => {
    expect(await saveRoutes({ languages: ["de-AT"], model: "umpire-decide" })).toEqual([422, "invalid_body"])
    const twice = [
      { languages: ["de"], model: "umpire-decide" },
      { languages: ["fr", "de"], model: "everyones" },
    ]
    expect(await saveRoutes(...twice)).toEqual([422, "invalid_body"])
  })
})

describe("a fallback", () => {
  test.each([
    ["is down", "down", /inference_failed|routing_failed/],
    ["cannot take so long a text", "short", /context_length_exceeded/],
  ])("asks the next model when one %s", async (_, member, code) => {
    await create(`not-${member}`, { fallback: [member, "umpire-decide"] })
    const alone = await ask("umpire-decide")
    const asked = await ask(`not-${member}`)
    expect(asked).toMatchObject({ status: 200, answers: alone.answers, tokens: alone.tokens })
    expect(asked.stages).toMatch(
      new RegExp(`^${member};result=(${code.source});.*, umpire-decide;result=success;`),
    )
  })

  test("streams from the next model when the first fails before its first byte", async () => {
    await create("talks", { fallback: ["silent", "smollm2-135m-instruct"] })
    const body = {
      model: "talks",
      stream: true,
      max_tokens: 4,
      messages: [{ role: "user", content: "Hello" }],
    }
    const response = await server.post("/v1/chat/completions", body)
    expect(response.status).toBe(200)
    expect(await response.text()).toMatch(/"model":"smollm2-135m-instruct"[\s\S]*data: \[DONE\]/)
    const { model, virtual_model, stages } = await recordOf(response.headers.get("x-umpire-sequence") ?? "")
    expect([model, virtual_model]).toEqual(["smollm2-135m-instruct", "talks"])
    expect(stages.map((stage) => [stage.model, stage.result === "success", stage.cost === "0"])).toEqual([
      ["silent", false, true],
      ["smollm2-135m-instruct", true, false],
    ])
  })

  test("fails no request when its first model dies under load", async () => {
    await create("survivor", { fallback: ["mortal", "umpire-decide"] })
    const statuses: number[] = []
    const load = async (): Promise<void> => {
      for (let at = 0; at < 10; at++) {
        statuses.push((await ask("survivor")).status)
        if (statuses.length === 20) await mortal.close()
      }
    }
    await Promise.all(Array.from({ length: 8 }, load))
    expect(statuses).toEqual(Array.from({ length: 80 }, () => 200))
    expect(mortal.asked.length).toBeGreaterThan(0)
  })
})

const chosen = async (key: string): Promise<string> =>
  ((await ask("canary", { "x-umpire-sticky": key })).stages ?? "").split(";")[0] ?? ""

test("a split answers the same header by the same model, and all of them by both", async () => {
  await create("canary", {
    split: [
      { model: "umpire-decide", weight: 1 },
      { model: "large", weight: 1 },
    ],
  })
  const keys = Array.from({ length: 16 }, (_, at) => `customer ${at}`)
  const first = await Promise.all(keys.map(chosen))
  expect(await Promise.all(keys.map(chosen))).toEqual(first)
  expect(new Set(first)).toEqual(new Set(["umpire-decide", "large"]))
})

const confidence = ({ probability }: { probability: number }): number =>
  Math.max(probability, 1 - probability)

/** A threshold that one of the three questions is below. */
async function thresholdOfOne(): Promise<{ threshold: number; doubtful: number; alone: Asked }> {
  const alone = await ask("umpire-decide")
  const sorted = alone.answers.map(confidence).toSorted((a, b) => a - b)
  const threshold = ((sorted[0] ?? 0) + (sorted[1] ?? 0)) / 2
  return { threshold, doubtful: alone.answers.findIndex((one) => confidence(one) < threshold), alone }
}

const cascade = (models_: string[], threshold: number, changes: object = {}) => ({
  cascade: { models: models_, thresholds: { predicate: threshold }, ...changes },
})

describe("a cascade", () => {
  test("asks the next model only what is doubtful, and leaves the other answers as they are", async () => {
    const { threshold, doubtful, alone } = await thresholdOfOne()
    await create("careful", cascade(["umpire-decide", "large"], threshold))
    large.asked.length = 0
    const asked = await ask("careful")
    expect(large.asked).toEqual([[instructions[doubtful]]])
    expect(asked.answers.map((one, at) => (at === doubtful ? null : one))).toEqual(
      alone.answers.map((one, at) => (at === doubtful ? null : one)),
    )
    expect(asked.answers[doubtful]?.probability).toBeCloseTo(0.999)
    expect([asked.tokens, asked.warning]).toEqual([largeTokens, null])
    expect(asked.stages).toMatch(
      /^umpire-decide;result=success;questions=3;.*, large;result=success;questions=1;tokens=42;/,
    )
    const record = await recordOf(asked.sequence)
    expect(record).toMatchObject({ model: "large", virtual_model: "careful", questions: 3 })
    expect(record.input_tokens).toBe(alone.tokens + largeTokens)
    expect(record.stages).toMatchObject([
      { model: "umpire-decide", questions: 3, input_tokens: alone.tokens },
      { model: "large", questions: 1, input_tokens: largeTokens, cost: "0.000042" },
    ])
  })

  test("asks nobody else where nothing is doubtful", async () => {
    await create("sure", cascade(["umpire-decide", "large"], 0))
    large.asked.length = 0
    const alone = await ask("umpire-decide")
    const asked = await ask("sure")
    expect(asked).toMatchObject({ answers: alone.answers, tokens: alone.tokens, warning: null })
    expect(large.asked).toEqual([])
  })

  test.each([
    ["down", /inference_failed|routing_failed/],
    ["slow", /inference_failed/],
    ["short", /context_length_exceeded/],
  ])("whose next model is %s answers with a warning, or fails, as it says", async (member, code) => {
    const alone = await ask("umpire-decide")
    await create(`with-${member}`, cascade(["umpire-decide", member], 1))
    await create(`fails-with-${member}`, cascade(["umpire-decide", member], 1, { on_failure: "error" }))
    const [warned, failed] = await Promise.all([ask(`with-${member}`), ask(`fails-with-${member}`)])
    expect(warned).toMatchObject({ status: 200, answers: alone.answers, tokens: alone.tokens })
    expect(warned.warning).toMatch(new RegExp(`^${member};code=(${code.source});questions=3$`))
    expect(failed.code).toMatch(code)
    // What is not answered is free.
    expect(await recordOf(failed.sequence)).toMatchObject({ result: "error", cost: "0" })
  })

  test("that cannot be paid to its end answers with a warning, or is refused, as it says", async () => {
    const made = await fetch(`${server.url}/v1/organizations/${organization}/api_keys`, {
      method: "POST",
      headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json" },
      body: JSON.stringify({
        name: "poor",
        permissions: ["inference"],
        budgets: [{ period: "day", cutoff_threshold_cents: 1 }],
      }),
    })
    const { data } = (await made.json()) as { data: { secret: string } }
    const poor = { authorization: `Bearer ${data.secret}` }
    await create("cheap-first", cascade(["umpire-decide", "dear"], 1))
    const alone = await ask("umpire-decide")
    expect(await ask("cheap-first", poor)).toMatchObject({
      status: 200,
      answers: alone.answers,
      warning: "dear;code=key_budget_exceeded;questions=3",
    })
    await create("all-or-nothing", cascade(["umpire-decide", "dear"], 1, { on_failure: "error" }))
    expect(await ask("all-or-nothing", poor)).toMatchObject({ status: 402, code: "key_budget_exceeded" })
  })

  test.each([
    ["cost", { cost_max_usd: "0.00001" }],
    ["latency", { latency_max_ms: 1 }],
  ])("asks no further model than its budget of %s allows", async (name, budget) => {
    // Its own end is no failure.
    await create(
      `short-of-${name}`,
      cascade(["umpire-decide", "large"], 1, { ...budget, on_failure: "error" }),
    )
    const alone = await ask("umpire-decide")
    expect(await ask(`short-of-${name}`)).toMatchObject({
      status: 200,
      answers: alone.answers,
      warning: "large;code=budget_spent;questions=3",
    })
  })

  test("answers System One too, and is refused for chat", async () => {
    const asked = {
      model: "with-short",
      state: input,
      questions: { late: { type: "noul", instructions: instructions[0] } },
    }
    const response = await server.post("/v1/systemone", asked)
    expect([response.status, response.headers.get("x-umpire-warning")]).toEqual([
      200,
      "short;code=context_length_exceeded;questions=1",
    ])
    const messages = [{ role: "user", content: "Hello" }]
    const chat = await server.post("/v1/chat/completions", { model: "with-short", messages })
    expect(chat.status).toBe(404)
  })

  test("asks for a question set what is below the set's own thresholds", async () => {
    const { threshold, doubtful } = await thresholdOfOne()
    await create("of-set", cascade(["umpire-decide", "large"], 0))
    const [status] = await send("POST", `/v1/organizations/${organization}/question_sets`, {
      name: "parcels",
      model: "of-set",
      questions: questions.map((question) => ({ ...question, threshold })),
    })
    expect(status).toBe(200)
    large.asked.length = 0
    const response = await server.post("/v1/decisions", { model: "set:parcels", input, questions: [] })
    expect(response.status).toBe(200)
    expect(large.asked).toEqual([[instructions[doubtful]]])
    expect(response.headers.get("x-umpire-abstained")).toBeNull()
  })
})

const sum = (costs: readonly { readonly cost: string }[]): bigint =>
  costs.reduce((total, { cost }) => total + ticksOfUsd(cost), 0n)

/** By model, in ticks. */
const spent = async (): Promise<Map<string, bigint>> => {
  const { data } = await get<{ data: { billing_account_id: string } }>(`/v1/organizations/${organization}`)
  const path = `/v1/billing_accounts/${data.billing_account_id}/usage_spend?range=30d`
  const { models: byModel } = (await get<{ data: UsageSpend }>(path)).data
  return new Map(
    byModel.map(({ model, total_cents }) => [model, BigInt(Math.round(total_cents * ticksPerCent))]),
  )
}

/** A stage's cost is its model's; a request without stages is its own. */
function costByModel(all: readonly SequenceDetail[]): Map<string, bigint> {
  const sums = new Map<string, bigint>()
  for (const one of all)
    for (const { model, cost } of one.stages.length > 0 ? one.stages : [one])
      sums.set(model, (sums.get(model) ?? 0n) + ticksOfUsd(cost))
  return sums
}

async function listAll(): Promise<SequenceDetail[]> {
  const all: SequenceDetail[] = []
  let cursor: string | null = null
  do {
    const query: string = cursor === null ? "" : `&cursor=${cursor}`
    const page: { data: SequenceDetail[]; next_cursor: string | null } = await get(
      `/v1/organizations/${organization}/sequences?limit=200${query}`,
    )
    all.push(...page.data)
    cursor = page.next_cursor
  } while (cursor !== null)
  return all
}

test("what all requests cost is what was charged, to the tick and by the models of their stages, and stages add up to their requests", async () => {
  let all: SequenceDetail[] = []
  // Both are written some time after the answers, each on its own.
  const differences = async (): Promise<string[]> => {
    all = await listAll()
    const [charged, recorded] = [await spent(), costByModel(all)]
    return [...new Set([...charged.keys(), ...recorded.keys()])].filter(
      (model) => (charged.get(model) ?? 0n) !== (recorded.get(model) ?? 0n),
    )
  }
  await expect.poll(differences).toEqual([])
  expect(costByModel(all).size).toBeGreaterThan(2)
  for (const one of all)
    if (one.stages.length > 0) expect(sum(one.stages), one.seq_id).toBe(ticksOfUsd(one.cost))
  expect(all.filter(({ stages }) => stages.length > 1).length).toBeGreaterThan(10)
  const range = `range_start=1&range_end=${Number.MAX_SAFE_INTEGER}`
  const { breakdown, summary } = (
    await get<{ data: OverviewResponse }>(
      `/v1/organizations/${organization}/analytics/overview?${range}&group_by=model&metric=cost`,
    )
  ).data
  expect(summary.requests).toBe(all.length)
  const byModel = new Map(
    breakdown.rows.map(({ key, value }) => [key, BigInt(Math.round(value * Number(ticksPerUsd)))]),
  )
  expect(byModel).toEqual(costByModel(all))
})
