/** Models that an operator connects by address and key: tested at once, kept with an encrypted key, calibrated by a check, asked by cascades. */
import { basename, join } from "node:path"
import { gunzipSync } from "node:zlib"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { afterAll, beforeAll, expect, test } from "vitest"
import type { OperatorClient } from "../src/contract/client.ts"
import { type ChatServer, startChatServer } from "./chat-servers.ts"
import { createIds } from "../src/base/ids.ts"
import { ticksOfUsd, usdText } from "../src/base/money.ts"
import type { OverviewResponse } from "../src/contract/analytics.ts"
import { issueInvoices } from "../src/control/billing/invoices.ts"
import { findLastInvoice, listInvoiceLines } from "../src/store/invoices.ts"
import { openPglite } from "../src/store/pglite.ts"
import { ManualClock } from "./manual-clock.ts"
import { remoteDialects } from "../src/contract/model-check.ts"
import { silentLog } from "../src/base/log.ts"
import type { CheckState } from "../src/contract/platform/connected-models.ts"
import type { TeachResult } from "../src/contract/question-sets/jobs.ts"
import { readCheckRows } from "../src/main/model-check.ts"
import { RemoteModels } from "../src/main/remote-models.ts"
import { connectedModels } from "../src/store/connected-models.ts"
import { seedConnectedModel } from "./connected-model.ts"
import { openTestDatabase, prepareDirectory } from "./database.ts"
import { catalogOf } from "./in-memory-gateway.ts"
import { owner, ownerOf } from "./console.ts"
import { makeOrganization, operatorOf } from "./operator.ts"
import { platformCipher, seeder } from "./platform.ts"
import { type TestServer, startServer } from "./server.ts"

let dataDirectory: string
let server: TestServer
let operator: OperatorClient
let anthropic: ChatServer

beforeAll(async () => {
  dataDirectory = await mkdtemp(join(tmpdir(), "umpire-connected-"))
  await prepareDirectory(join(dataDirectory, "database"))
  anthropic = await startChatServer("anthropic")
  server = await startServer({
    dataDirectory,
    env: { UMPIRE_BOOTSTRAP_EMAIL: owner.email, UMPIRE_BOOTSTRAP_PASSWORD: owner.password },
  })
  operator = await operatorOf(server)
})
afterAll(async () => {
  await server.stop()
  await anthropic.close()
  await rm(dataDirectory, { recursive: true, force: true })
})

const prices = {
  price_m_input_tokens_usd: "1",
  price_m_input_cache_read_tokens_usd: "0.1",
  price_m_output_tokens_usd: "5",
}
const given = () => ({
  sku: "claude",
  dialect: "anthropic" as const,
  url: anthropic.url,
  model: "claude-large",
  ...prices,
})
const decide = async (model: string): Promise<Response> =>
  await server.post("/v1/decisions", {
    model,
    input: "The parcel is green.",
    questions: [{ type: "predicate", instructions: "Is the word green there?" }],
  })
const listed = async () => (await operator.listCatalog()).find(({ sku }) => sku === "claude")

test("a server that refuses the key is not connected, and the key is not told", async () => {
  const body = { ...given(), key: "sk-wrong-secret" }
  const failed = await operator.connectModel({ body }).catch((error: unknown) => error)
  expect(failed).toMatchObject({ message: expect.stringContaining("Cannot connect claude") as string })
  expect(String(failed) + server.stdout() + server.stderr()).not.toContain("sk-wrong-secret")
  expect(await listed()).toBeUndefined()
})

test.each(remoteDialects)("%s: an address where nothing listens is not connected", async (dialect) => {
  // Nothing may listen on port 1.
  const body = { ...given(), sku: "nobody", dialect, url: "http://127.0.0.1:1/v1" }
  await expect(operator.connectModel({ body })).rejects.toThrow(
    "Cannot connect nobody: Cannot run the request at the worker: it cannot be reached",
  )
})

test("what answers is in the catalog at once, says how it decides, and its key is kept encrypted", async () => {
  const added = await operator.connectModel({ body: { ...given(), key: anthropic.key } })
  expect(added).toMatchObject({ sku: "claude", decides: "schema", calibrated: false })
  const backup = join(dataDirectory, "..", `${basename(dataDirectory)}.backup`)
  await operator.takeBackup({ body: { file: backup } })
  const kept = gunzipSync(await readFile(backup)).toString()
  await rm(backup)
  expect(kept).toMatch(/sealed_key[^,]*sealed:/)
  expect(kept).not.toContain(anthropic.key)
  await expect(operator.connectModel({ body: { ...given(), key: anthropic.key } })).rejects.toThrow(
    /a model of this name/,
  )
})

test("its decisions cost what its own counts come to, and say that nothing calibrates them", async () => {
  const response = await decide("claude")
  expect(await response.json()).toMatchObject({
    answers: [{ probability: expect.closeTo(0.9, 9) as number }],
    usage: { input_tokens: 42, input_tokens_details: { cached_tokens: 7 }, output_tokens: 0 },
  })
  // 35 tokens at 1, 7 cached at 0.1 and 40 written at 5 USD a million.
  expect(Number(response.headers.get("x-umpire-cost"))).toBeCloseTo(0.0002357, 12)
  expect(response.headers.get("x-umpire-uncalibrated")).toBe("claude")
  expect(await listed()).toMatchObject({ decides: "schema", calibrated: false })
})

test("what is taught on a model that nothing calibrates promises nothing, however right it is", async () => {
  const { api } = await ownerOf(server)
  const params = { org_id: (await operator.listAllOrganizations()).at(-1)?.id ?? "" }
  const question = { type: "predicate", name: "green", instructions: "Is the word green there?" } as const
  const set = { name: "colours", model: "claude", questions: [question] }
  const { id: set_id } = await api.createQuestionSet({ params, body: set })
  const at = { ...params, set_id }
  const rows = Array.from({ length: 80 }, (_, nth) => ({
    input: `Parcel ${nth} is ${nth % 2 === 0 ? "green" : "blue"}.`,
    labels: { green: nth % 2 === 0 },
  }))
  await api.addQuestionSetExamples({ params: at, body: { rows } })
  let job = await api.teachQuestionSet({ params: at, body: { target_accuracy: 0.8 } })
  await expect
    .poll(async () => (job = await api.getQuestionSetJob({ params: { ...at, job_id: job.id } })).state, {
      timeout: 120_000,
    })
    .toBe("succeeded")
  const taught = job.result as TeachResult | null
  expect(taught?.questions[0]).toMatchObject({ name: "green", promise: { promised: false } })
}, 180_000)

test("a check says its price first, keeps to its limit, and calibrates", async () => {
  anthropic.chats.length = 0
  const estimate = await operator.checkModel({ body: { model: "claude" } })
  expect(estimate).toMatchObject({ state: "estimate", rows: 200, method: "schema" })
  await expect(operator.checkModel({ body: { model: "claude", cost_max_usd: "0.0001" } })).rejects.toThrow(
    /more than the limit/,
  )
  expect(anthropic.chats).toHaveLength(0)
  await operator.checkModel({ body: { model: "claude", cost_max_usd: estimate.cost_usd } })
  const state = async () => await operator.checkModel({ body: { model: "claude" } })
  await expect.poll(async () => (await state()).state, { timeout: 120_000 }).toBe("done")
  const { cost_usd, accuracy } = await state()
  expect(Number(cost_usd)).toBeCloseTo(200 * 0.0002357, 9)
  expect(accuracy).toBeGreaterThan(0)
  expect(anthropic.chats).toHaveLength(200)
  const response = await decide("claude")
  expect(response.headers.get("x-umpire-uncalibrated")).toBeNull()
  expect(await listed()).toMatchObject({ calibrated: true })
})

/** Begins a check as the last one was priced, and waits for its end. */
async function checked(): Promise<CheckState> {
  await operator.checkModel({ body: { model: "claude", cost_max_usd: "10" } })
  const state = async () => await operator.checkModel({ body: { model: "claude" } })
  await expect.poll(async () => (await state()).state, { timeout: 120_000 }).not.toBe("running")
  return await state()
}

test("a row that is blocked is left out of a check and named, and one that the server was full for is asked again", async () => {
  // Words that are in one row alone, and need no escapes.
  const all = (await readCheckRows()).map(({ text }, at) => ({ row: at + 1, start: text.slice(0, 30) }))
  const [blocked, full] = all.filter(
    ({ start }) => /^[\w ,.]+$/.test(start) && all.filter((other) => other.start === start).length === 1,
  )
  let fullTimes = 0
  anthropic.chats.length = 0
  anthropic.refuses = (body) => {
    if (body.includes(blocked?.start ?? "")) return 400
    return body.includes(full?.start ?? "") && fullTimes++ === 0 ? 429 : null
  }
  const { state, rows, left_out, cost_usd } = await checked()
  expect([state, rows, left_out]).toEqual([
    "done",
    199,
    [{ row: blocked?.row, reason: "Cannot run the request: the worker refuses it: this is blocked here" }],
  ])
  expect(Number(cost_usd)).toBeCloseTo(199 * 0.0002357, 9)
  expect(anthropic.chats).toHaveLength(201)
  expect(fullTimes).toBe(2)
})

test("a check that over half of a kind's rows are refused for ends, says what it spent, and keeps the one before", async () => {
  const before = await listed()
  let asked = 0
  anthropic.chats.length = 0
  anthropic.refuses = () => (++asked > 16 ? 400 : null)
  const { state, problem } = await checked()
  anthropic.refuses = () => null
  expect([state, problem]).toEqual([
    "failed",
    expect.stringMatching(/^Over half of the questions .*this is blocked here; USD 0\.00\d+ was spent$/),
  ])
  expect(anthropic.chats.length).toBeLessThan(200)
  expect(await listed()).toEqual(before)
})

const options = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ value: at === count - 2 ? "green" : `colour${at}` }))
const choice = (count: number) => ({ type: "choice", instructions: "Which colour?", choices: options(count) })
const asks = async (questions: readonly object[]): Promise<Response> =>
  await server.post("/v1/decisions", { model: "claude", input: "The parcel is green.", questions })

test("a chat model decides between 255 options; with one more nothing is asked, and nothing spent", async () => {
  anthropic.chats.length = 0
  const most = await asks([choice(255)])
  const { answers } = (await most.json()) as { answers: { probabilities: { probability: number }[] }[] }
  const found = answers[0]?.probabilities.map(({ probability }) => probability) ?? []
  expect(found).toHaveLength(255)
  expect(found.indexOf(Math.max(...found))).toBe(253)
  expect(anthropic.chats).toHaveLength(1)
  const over = await asks([choice(256)])
  expect([over.status, over.headers.get("x-umpire-cost"), anthropic.chats.length]).toEqual([422, null, 1])
})

test("it decides 4,096 branches in one request, 500 options and forty questions at a time; one more is refused before it is asked", async () => {
  anthropic.chats.length = 0
  const isGreen = { type: "predicate", instructions: "Is the word green there?" }
  const whole = [
    ...Array.from({ length: 16 }, () => choice(255)),
    ...Array.from({ length: 16 }, () => isGreen),
  ]
  const most = await asks(whole.map((one, at) => ({ ...one, instructions: `${one.instructions} ${at}` })))
  expect(most.status).toBe(200)
  const { answers, usage } = (await most.json()) as { answers: unknown[]; usage: { input_tokens: number } }
  expect(answers).toHaveLength(32)
  expect(usage.input_tokens).toBe(42 * anthropic.chats.length)
  // A question of 255 options and another have more than 500.
  expect(anthropic.chats).toHaveLength(16)
  const asked = anthropic.chats.length
  expect((await asks([...whole, isGreen])).status).toBe(422)
  expect(anthropic.chats).toHaveLength(asked)
})

test("another Umpire is asked by its own endpoint for decisions, as the probe finds", async () => {
  const mirror = {
    sku: "mirror",
    dialect: "openai" as const,
    url: `${server.url}/v1`,
    model: "umpire-decide-small",
    ...prices,
    key: server.key,
  }
  expect(await operator.connectModel({ body: mirror })).toMatchObject({ sku: "mirror", decides: "native" })
  const ask = async (model: string) => {
    const questions = [
      { type: "predicate", instructions: "Is the parcel green?" },
      { type: "choice", instructions: "Which colour?", choices: options(5) },
      {
        type: "score",
        instructions: "How sure is the writer?",
        levels: [{ label: "not" }, { label: "somewhat" }, { label: "very" }],
      },
    ]
    const response = await server.post("/v1/decisions", { model, input: "The parcel is green.", questions })
    const { answers, usage } = (await response.json()) as {
      answers: { probability?: number; probabilities?: { probability: number }[] }[]
      usage: object
    }
    const flat = answers.flatMap(({ probability, probabilities }) => [
      ...(probability === undefined ? [] : [probability]),
      ...(probabilities ?? []).map((one) => one.probability),
    ])
    return { flat, usage, uncalibrated: response.headers.get("x-umpire-uncalibrated") }
  }
  const [far, near] = [await ask("mirror"), await ask("umpire-decide-small")]
  expect(far.usage).toEqual(near.usage)
  // Its probabilities are those of a calibrated model.
  expect(far.uncalibrated).toBeNull()
  expect(far.flat).toHaveLength(9)
  for (const [at, probability] of far.flat.entries()) expect(probability).toBeCloseTo(near.flat[at] ?? 0, 6)
})

test("a model of this machine is not checked", async () => {
  await expect(operator.checkModel({ body: { model: "umpire-decide" } })).rejects.toThrow(
    /no model at a server/,
  )
  await expect(operator.checkModel({ body: { model: "nothing" } })).rejects.toThrow(/no such model/)
})

test("an owner of the operator's organization connects and disconnects by session; others are told whom to ask", async () => {
  const { api } = await ownerOf(server)
  const [first] = await operator.listAllOrganizations()
  const params = { org_id: first?.id ?? "" }
  const body = { ...given(), sku: "second", key: anthropic.key }
  const made = await api.createConnectedModel({ params, body })
  expect(made).toMatchObject({ sku: "second", decides: "schema", calibrated: false, has_key: true })
  expect((await api.listConnectedModels({ params })).map(({ sku }) => sku).toSorted()).toEqual([
    "claude",
    "mirror",
    "second",
  ])
  expect((await decide("second")).status).toBe(200)
  const models = await api.listOrganizationModels({ params })
  expect(models.find(({ model_sku }) => model_sku === "second")).toMatchObject({
    decides: "schema",
    calibrated: false,
  })
  await api.deleteConnectedModel({ params: { ...params, connected_model_id: made.id } })
  expect(await (await decide("second")).json()).toMatchObject({ error: { code: "unknown_model" } })
  for (const [wrong, why] of [
    [{ url: "http://169.254.169.254/latest" }, /secrets/],
    [{ url: "http://user:password@127.0.0.1:1/v1" }, /without a name and a password/],
    [{ url: "file:///etc/passwd" }, /url/],
    [{ url: "http://127.0.0.1:1/v1" }, /cannot be reached/],
  ] as const)
    await expect(api.createConnectedModel({ params, body: { ...body, ...wrong } })).rejects.toThrow(why)
  const other = await operator.openOrganization({ body: { name: "Tenant", owner: owner.email } })
  const refused = api.createConnectedModel({ params: { org_id: other.id }, body })
  await expect(refused).rejects.toMatchObject({
    status: 403,
    message: expect.stringContaining("ask the operator") as string,
  })
  const entries = await api.listAuditLog({ params, query: {} })
  const connected = entries.data.filter(({ action }) => action.startsWith("connected_model."))
  expect(connected.map(({ action }) => action)).toEqual([
    "connected_model.delete",
    "connected_model.create",
    "connected_model.create",
    "connected_model.create",
  ])
  expect(JSON.stringify(entries)).not.toContain(anthropic.key)
})

test("every gateway of a database serves what one of them connected, until it is disconnected", async () => {
  const database = await openTestDatabase()
  const ids = createIds()
  const place = { database, ids }
  const catalog = catalogOf()
  const served: string[] = []
  const models = await RemoteModels.open({ database, cipher: platformCipher, catalog, log: silentLog })
  models.serveBy({
    addModel: ({ sku }) => void served.push(`+${sku}`),
    removeModel: (sku) => void served.push(`-${sku}`),
  })
  try {
    const seed = seeder(place)
    const organizationId = await seed.organization("One", await seed.billingAccount())
    const id = await seedConnectedModel(place, organizationId, "far")
    await expect.poll(() => catalog.find("far")?.contextTokensMax).toBe(128_000)
    expect(models.workersOf("far")).toEqual([
      { dialect: "openai", url: "https://models.example/v1", model: "large" },
    ])
    // A name that the catalog has already stays what it is.
    await seedConnectedModel(place, organizationId, "m")
    await connectedModels.remove(database, id, new Date())
    await expect.poll(() => served).toEqual(["+far", "-far"])
    expect(catalog.find("far")).toBeNull()
    expect(catalog.find("m")?.file).toBe("m.onnx")
  } finally {
    await models.close()
    await database.close()
  }
})

test("the first rerank by a reasoning model reserves and charges what it thinks", async () => {
  const reasoning = await startChatServer("reasoning")
  try {
    const { id: org_id, secret } = await makeOrganization(server, { name: "Thinker", owner: owner.email })
    const opened = (await operator.listAllOrganizations()).find(({ id }) => id === org_id)
    const account = opened?.billing_account_id ?? ""
    const credit = async (cents: number) =>
      await operator.adjustAccount({ body: { account, cents, reason: "Credit." } })
    const rerank = async (model: string) =>
      await server.post(
        "/v1/rerank",
        {
          model,
          query: "Which parcel is green?",
          documents: ["Parcel one is green.", "Parcel two is blue."],
        },
        { authorization: `Bearer ${secret}` },
      )
    // How it decides is asked anew by what serves it, as after a start.
    const connect = async (sku: string) => {
      const served = { dialect: "openai" as const, url: reasoning.url, model: "thinker", key: reasoning.key }
      await operator.connectModel({ body: { ...given(), ...served, sku } })
      reasoning.chats.length = 0
    }
    const { api } = await ownerOf(server)
    const params = { billing_account_id: account }
    await credit(12 - (await api.getBillingAccount({ params, query: {} })).credit_balance_cents)
    await connect("poor-thinker")
    const refused = await rerank("poor-thinker")
    // Enough for what it writes, not for what it may think of two documents.
    expect([refused.status, await refused.json()]).toMatchObject([
      402,
      { error: { code: "insufficient_credits" } },
    ])
    expect(reasoning.chats.filter(({ body }) => JSON.stringify(body).includes("Parcel"))).toEqual([])
    await credit(500)
    await connect("thinker")
    for (const response of [await rerank("thinker"), await rerank("thinker")]) {
      const at = { org_id, seq_id: response.headers.get("x-umpire-sequence") ?? "" }
      const recorded = async () => await api.getSequence({ params: at }).catch(() => null)
      await expect.poll(recorded, { timeout: 30_000 }).not.toBeNull()
      const found = await recorded()
      const output = found?.output_tokens ?? 0
      // Of two documents, with 200 tokens of thoughts each.
      expect(output).toBeGreaterThan(400)
      const priced = [found?.input_tokens, found?.cached_input_tokens].map(Number)
      const ticks = [10_000, 1_000].reduce(
        (sum, price, nth) => sum + price * (priced[nth] ?? 0),
        output * 50_000,
      )
      expect(found?.cost).toBe(usdText(BigInt(ticks)))
    }
  } finally {
    await reasoning.close()
  }
})

test("reranks and moderations by it are reserved, recorded and charged as the same decisions", async () => {
  await operator.connectModel({ body: { ...given(), sku: "reader", key: anthropic.key } })
  const { id: org_id, secret } = await makeOrganization(server, { name: "Reader", owner: owner.email })
  const opened = (await operator.listAllOrganizations()).find(({ id }) => id === org_id)
  const account = opened?.billing_account_id ?? ""
  const { api } = await ownerOf(server)
  const params = { billing_account_id: account }
  const left = async () =>
    (await api.getBillingAccount({ params, query: { force_refresh: "true" } })).credit_balance_cents
  const leave = async (cents: number) =>
    await operator.adjustAccount({
      body: { account, cents: cents - (await left()), reason: "What is left." },
    })
  const ask = async (path: string, body: object) =>
    await server.post(path, { model: "reader", ...body }, { authorization: `Bearer ${secret}` })
  const documents = Array.from({ length: 40 }, (_, nth) => `Parcel ${nth} is green.`)
  const ranked = { query: "Which parcel is green?", documents }
  const isGreen = { type: "predicate", instructions: "Is the word green there?" }

  // Enough for the texts, not for what may be written about them.
  await leave(6)
  anthropic.chats.length = 0
  const refused = await ask("/v1/rerank", ranked)
  expect([refused.status, await refused.json()]).toMatchObject([
    402,
    { error: { code: "insufficient_credits" } },
  ])
  expect(anthropic.chats).toHaveLength(0)

  await leave(100)
  for (const [path, body, decisions] of [
    ["/v1/decisions", { input: "The parcel is green.", questions: [isGreen] }, 1],
    ["/v1/rerank", ranked, 40],
    ["/v2/rerank", { ...ranked, documents: documents.slice(0, 1) }, 1],
    ["/v1/moderations", { input: "The parcel is green." }, 1],
    ["/v1/moderations", { input: ["The parcel is green.", "The parcel is blue."] }, 2],
  ] as const) {
    const response = await ask(path, body)
    expect([path, response.status]).toEqual([path, 200])
    expect(response.headers.get("x-umpire-uncalibrated")).toBe("reader")
    const { usage, meta } = (await response.json()) as { usage: object; meta?: object }
    if (path !== "/v1/decisions")
      expect(usage).toEqual({ prompt_tokens: 42 * decisions, total_tokens: 82 * decisions })
    if (meta)
      expect(meta).toMatchObject({ tokens: { input_tokens: 42 * decisions, output_tokens: 40 * decisions } })
    const at = { params: { org_id, seq_id: response.headers.get("x-umpire-sequence") ?? "" } }
    await expect
      .poll(async () => await api.getSequence(at).catch(() => null), { timeout: 30_000 })
      .toMatchObject({
        model: "reader",
        input_tokens: 35 * decisions,
        cached_input_tokens: 7 * decisions,
        output_tokens: 40 * decisions,
        cost: usdText(BigInt(decisions) * ticksOfUsd("0.0002357")),
      })
  }
  const spent = async () => {
    const { models } = await api.getUsageSpend({ params, query: {} })
    return models.find(({ model }) => model === "reader")?.total_cents
  }
  await expect.poll(spent, { timeout: 30_000 }).toBeCloseTo(45 * 0.02357, 9)
  // 100 less 1.06, in whole cents.
  await expect.poll(left, { timeout: 30_000 }).toBe(98)
})

test("a cascade asks it what the small model doubts, also after a restart; away, the small answer stands with a warning", async () => {
  const organization = (await operator.listAllOrganizations()).at(-1)
  const params = { org_id: organization?.id ?? "" }
  const cascade = { models: ["umpire-decide", "claude"], thresholds: { predicate: 1, choice: 1, score: 1 } }
  await operator.saveVirtualModel({ params, body: { name: "careful", cascade } })
  await server.stop()
  server = await startServer({ dataDirectory })
  operator = await operatorOf(server)
  const asked = await decide("careful")
  expect(asked.headers.get("x-umpire-stages")).toMatch(/claude;result=success;questions=1;tokens=82;/)
  expect(asked.headers.get("x-umpire-uncalibrated")).toBeNull()
  await expectRecorded(asked, params.org_id)
  const thrifty = { ...cascade, cost_max_day_usd: "0.000001" }
  await operator.saveVirtualModel({ params, body: { name: "thrifty", cascade: thrifty } })
  anthropic.chats.length = 0
  const within = await decide("thrifty")
  expect(within.headers.get("x-umpire-warning")).toBe("claude;code=budget_spent;questions=1")
  await operator.saveVirtualModel({
    params,
    body: { name: "thrifty", cascade: { ...thrifty, cost_max_day_usd: "1" } },
  })
  expect((await decide("thrifty")).headers.get("x-umpire-warning")).toBeNull()
  expect(anthropic.chats).toHaveLength(1)
  const { api } = await ownerOf(server)
  const counted = async () => await api.listCascadeDays({ params, query: { cascade: "thrifty" } })
  await expect.poll(counted, { timeout: 30_000 }).toMatchObject([
    { stage: 0, requests: 2, questions: 2, changed: 0 },
    { stage: 1, questions: 1, unanswered: 1, cost_usd: "0.0002357" },
  ])
  await anthropic.close()
  const alone = await decide("careful")
  expect(alone.status).toBe(200)
  expect(alone.headers.get("x-umpire-warning")).toMatch(/^claude;code=\w+;questions=1$/)
})

/** Each stage has what its worker counted, in the record; and what it cost is in the account's spending by model. */
async function expectRecorded(asked: Response, org_id: string): Promise<void> {
  const { api } = await ownerOf(server)
  const seq_id = asked.headers.get("x-umpire-sequence") ?? ""
  await expect
    .poll(async () => await api.getSequence({ params: { org_id, seq_id } }).catch(() => null), {
      timeout: 30_000,
    })
    .toMatchObject({
      model: "claude",
      virtual_model: "careful",
      stages: [
        { model: "umpire-decide", result: "success", questions: 1, output_tokens: 0 },
        {
          model: "claude",
          result: "success",
          questions: 1,
          input_tokens: 35,
          cached_input_tokens: 7,
          output_tokens: 40,
          ms: expect.any(Number) as number,
          cost: "0.0002357",
        },
      ],
    })
  const account = (await operator.listAllOrganizations()).at(-1)?.billing_account_id ?? ""
  const spent = async (): Promise<number> => {
    const { models } = await api.getUsageSpend({ params: { billing_account_id: account }, query: {} })
    return models.find(({ model }) => model === "claude")?.total_cents ?? 0
  }
  // Two decisions alone, eighty that were taught on, and this one.
  await expect.poll(spent, { timeout: 30_000 }).toBeGreaterThan(82 * 0.02357)
}

test("one request that is sent on has the same usage and cost per stage in headers, record, analytics and the invoice", async () => {
  const worker = await startChatServer("anthropic")
  try {
    const body = { ...given(), sku: "followed", url: worker.url, key: worker.key }
    await operator.connectModel({ body })
    const organization = (await operator.listAllOrganizations()).at(-1)
    const [org_id, account] = [organization?.id ?? "", organization?.billing_account_id ?? ""]
    const cascade = {
      models: ["umpire-decide", "followed"],
      thresholds: { predicate: 1, choice: 1, score: 1 },
    }
    await operator.saveVirtualModel({ params: { org_id }, body: { name: "both", cascade } })
    const startMs = Date.now()
    const asked = await decide("both")
    const stages = asked.headers.get("x-umpire-stages") ?? ""
    const [, tokens, ownCost = ""] =
      /^umpire-decide;result=success;questions=1;tokens=(\d+);ms=[\d.]+;cost=([\d.]+), followed;/.exec(
        stages,
      ) ?? []
    expect(stages).toMatch(/followed;result=success;questions=1;tokens=82;ms=[\d.]+;cost=0\.0002357$/)
    const own = Number(tokens)
    const cost = asked.headers.get("x-umpire-cost") ?? ""
    expect(ticksOfUsd(ownCost) + ticksOfUsd("0.0002357")).toBe(ticksOfUsd(cost))
    const { api } = await ownerOf(server)
    const at = { params: { org_id, seq_id: asked.headers.get("x-umpire-sequence") ?? "" } }
    await expect
      .poll(async () => await api.getSequence(at).catch(() => null), { timeout: 60_000 })
      .toMatchObject({
        cost,
        input_tokens: own + 35,
        cached_input_tokens: 7,
        output_tokens: 40,
        stages: [
          { model: "umpire-decide", input_tokens: own, output_tokens: 0, cost: ownCost },
          {
            model: "followed",
            input_tokens: 35,
            cached_input_tokens: 7,
            output_tokens: 40,
            cost: "0.0002357",
          },
        ],
      })
    const range = { range_start: String(startMs - 1000), range_end: String(startMs + 600_000) }
    const kind = { group_by: "model", metric: "out_tokens" } as const
    const query = { ...range, ...kind, f: ["model:followed"] }
    const counted = async () => {
      const { summary } = (await api.getAnalyticsOverview({ params: { org_id }, query })) as OverviewResponse
      return [summary.requests, summary.in_tokens, summary.cached_in_tokens, summary.out_tokens]
    }
    await expect.poll(counted, { timeout: 60_000 }).toEqual([1, 35, 7, 40])
    await server.stop()
    const database = await openPglite({ directory: join(dataDirectory, "database") })
    try {
      const clock = new ManualClock(startMs + 40 * 24 * 3_600_000)
      expect(await issueInvoices({ database, clock, ids: createIds() })).toBeGreaterThan(0)
      const invoice = await findLastInvoice(database, account)
      const lines = await listInvoiceLines(database, invoice?.id ?? "")
      expect(lines.find(({ model }) => model === "followed")).toMatchObject({
        sequences: 1n,
        inputTokens: 35n,
        cachedInputTokens: 7n,
        outputTokens: 40n,
        amountTicks: ticksOfUsd("0.0002357"),
      })
    } finally {
      await database.close()
    }
  } finally {
    await worker.close()
  }
})
