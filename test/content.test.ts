/** Kept content in the whole product: kept, redacted, read, deleted, exported, reviewed; and nothing where nothing is kept. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest"
import { type TestServer, startServer } from "./server.ts"
import { bytesUnder } from "./written-files.ts"

const eventually = { timeout: 60_000, interval: 50 }

let server: TestServer
let organization: string

beforeAll(async () => {
  server = await startServer()
  organization = (await call("GET", "/v1/organizations")).body.data[0].id as string
})
afterAll(async () => {
  await server.stop()
})

interface Answer {
  readonly status: number
  // Bodies of every shape; what is not there fails the expectations.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
  readonly sequence: string
}

async function call(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(server.url + path, {
    method,
    headers: {
      authorization: `Bearer ${server.key}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const isJson = /^application\/json(?:;|$)/.test(response.headers.get("content-type") ?? "")
  const sequence = response.headers.get("x-umpire-sequence") ?? ""
  return { status: response.status, body: isJson ? JSON.parse(text) : text, sequence }
}
const own = async (method: string, rest: string, body?: unknown): Promise<Answer> =>
  await call(method, `/v1/organizations/${organization}${rest}`, body)

const urgent = { type: "predicate", name: "urgent", instructions: "Is it urgent?" }
const decide = async (input: string, tags?: string): Promise<Answer> =>
  await call(
    "POST",
    "/v1/decisions",
    { model: "umpire-decide", input, questions: [urgent] },
    tags === undefined ? {} : { "x-umpire-tags": tags },
  )
const keep = async (settings: object): Promise<Answer> => await own("PUT", "/content_settings", settings)
const contentOf = async ({ sequence }: Answer): Promise<Answer> =>
  await own("GET", `/sequences/${sequence}/content`)

/** Every byte that the server has written: its data directory and its logs. */
function written(): Buffer[] {
  return [...bytesUnder(server.dataDirectory), Buffer.from(server.stdout() + server.stderr())]
}
const isWritten = (marker: string): boolean => written().some((bytes) => bytes.includes(marker))

test("an organization that has set nothing keeps nothing: its evidence is in no file and no log", async () => {
  const marker = "marker-kept-nowhere-4711"
  const answered = await decide(`Please call ${marker} at once`)
  expect(answered.status).toBe(200)
  // A refused request names what is wrong with it, and not what it was about.
  expect((await call("POST", "/v1/decisions", { model: "umpire-decide", input: marker })).status).toBe(422)
  expect(await contentOf(answered)).toMatchObject({ status: 404 })
  expect(isWritten(marker)).toBe(false)
  // The search finds what is there: the sequence of the same request.
  expect(isWritten(answered.sequence)).toBe(true)
})

describe("content that is kept", () => {
  test("is read back as it was, is encrypted on the disk, and its reading is in the audit log", async () => {
    await keep({ keep: "evidence_and_answers" })
    const marker = "marker-encrypted-4712"
    const answered = await decide(`Please call ${marker} at once`, "team=ops,reference=case%2042")
    const { body } = await contentOf(answered)
    expect(body.data).toMatchObject({
      seq_id: answered.sequence,
      level: "evidence_and_answers",
      endpoint: "decisions",
      model: "umpire-decide",
      question_set: null,
      reference: "case 42",
      evidence: `Please call ${marker} at once`,
      questions: [{ name: "urgent", type: "predicate", instructions: "Is it urgent?", options: [] }],
      answers: [{ name: "urgent", abstained: false, threshold: null }],
      redactions: 0,
    })
    const { probability } = answered.body.answers[0]
    expect(body.data.answers[0].verdict).toBe(probability >= 0.5 ? "yes" : "no")
    expect(isWritten(marker)).toBe(false)
    const { data } = (await own("GET", "/audit_log?action=content.read")).body
    expect(data[0].resource).toEqual({ type: "content", id: answered.sequence })
    expect((await own("GET", "/content_settings")).body.data).toMatchObject({
      keep: "evidence_and_answers",
      available: true,
      stored: 1,
      dropped: { count: 0 },
    })
  })

  test("has no evidence at the level of answers, and follows the settings of a key", async () => {
    await keep({ keep: "answers" })
    const { body } = await contentOf(await decide("only the answer"))
    expect(body.data).toMatchObject({ level: "answers", evidence: null, answers: [{ name: "urgent" }] })
    const [{ id }] = (await own("GET", "/api_keys")).body.data
    const path = `/api_keys/${id}/content_settings`
    const over = { content: { keep: "evidence_and_answers", retention_days: 31 } }
    expect((await own("PUT", path, over)).status).toBe(422)
    await own("PUT", path, { content: { keep: "nothing" } })
    expect((await own("GET", "/content_settings")).body.data.keys).toEqual([
      { api_key_id: id, keep: "nothing", sample_rate: 1, retention_days: 30 },
    ])
    expect(await contentOf(await decide("not this key"))).toMatchObject({ status: 404 })
    await own("PUT", path, { content: { keep: "evidence_and_answers", retention_days: 30 } })
    expect((await contentOf(await decide("this key"))).body.data.evidence).toBe("this key")
    expect((await own("PUT", path, { content: null })).body.data).toMatchObject({
      content: null,
      effective: { keep: "answers" },
    })
    expect((await own("GET", "/content_settings")).body.data.keys).toEqual([])
  })

  test("is redacted by patterns before it is written, and by a question set before it is stored", async () => {
    const patterns = [
      { name: "email", pattern: "[\\w.]+@[\\w.]+" },
      { name: "number", pattern: "\\d{4,}" },
    ]
    await keep({ keep: "evidence_and_answers", redact: { patterns } })
    // The thread that redacts starts with its first work; on a busy machine that takes longer than a request may.
    const { body } = await vi.waitFor(async () => {
      const found = await contentOf(await decide("Write to ann@example.com or call 0123456789, or 12"))
      expect(found.status).toBe(200)
      return found
    }, eventually)
    expect(body.data).toMatchObject({
      evidence: "Write to [email] or call [number], or 12",
      redactions: 2,
    })
    await own("POST", "/question_sets", {
      name: "everything",
      model: "umpire-decide",
      // No answer is ever so sure, so it abstains, and what it abstains from is not stored.
      questions: [{ ...urgent, threshold: 1 }],
    })
    await keep({ keep: "evidence_and_answers", redact: { patterns, question_set: "everything@latest" } })
    const secret = await decide("The first sentence. The second one.")
    // A reader waits for what is being redacted, but not longer than two seconds.
    await expect
      .poll(async () => (await contentOf(secret)).body.data)
      .toMatchObject({ evidence: "[redacted]", redactions: 1 })
    expect((await keep({ keep: "answers", redact: { question_set: "unknown" } })).status).toBe(422)
    const bad = await keep({ keep: "answers", redact: { patterns: [{ name: "x", pattern: "(a)\\1" }] } })
    expect(bad).toMatchObject({ status: 422 })
    await keep({ keep: "evidence_and_answers" })
  })

  test("is deleted by id, by reference and by time, and exported", async () => {
    await keep({ keep: "evidence_and_answers" })
    const one = await decide("the first", "reference=r1")
    const other = await decide("the second", "reference=r2")
    const exported = (await own("GET", "/content/export")).body as string
    const lines = exported
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).evidence as string)
    expect(lines.slice(-2)).toEqual(["the first", "the second"])
    expect((await own("DELETE", `/sequences/${one.sequence}/content`)).status).toBe(204)
    expect((await own("DELETE", `/sequences/${one.sequence}/content`)).status).toBe(404)
    const byReference = await own("POST", "/content/delete", { reference: "r2" })
    expect(byReference.body.data).toEqual({ deleted: 1 })
    expect(await contentOf(other)).toMatchObject({ status: 404 })
    const all = await own("POST", "/content/delete", { before: new Date(Date.now() + 60_000).toISOString() })
    expect(all.body.data.deleted).toBeGreaterThan(0)
    expect((await own("GET", "/content/export")).body).toBe("")
    // What comes after the deletion is kept, although the time named lies ahead.
    expect((await contentOf(await decide("later"))).body.data.evidence).toBe("later")
  })
})

test("kept requests are found by a text in evidence, conversation and output, and the log says which were shown", async () => {
  await keep({ keep: "evidence_and_answers" })
  const late = await decide("The marker-searched-4720 parcel is late")
  const other = await decide("Nothing to see")
  const messages = [{ role: "user", content: "Say Marker-Searched-4720." }]
  const chat = await call("POST", "/v1/chat/completions", {
    model: "smollm2-135m-instruct",
    messages,
    max_tokens: 2,
  })
  const search = async (body: object): Promise<Answer> => await own("POST", "/content/search", body)
  const text = "marker-SEARCHED-4720"
  const first = (await search({ text, limit: 1 })).body
  expect(first.data).toMatchObject([
    { seq_id: chat.sequence, endpoint: "chat_completions", excerpt: "Say Marker-Searched-4720." },
  ])
  const second = (await search({ text, cursor: first.next_cursor })).body
  expect(second).toMatchObject({
    data: [{ seq_id: late.sequence, model: "umpire-decide" }],
    next_cursor: null,
  })
  expect((await search({ text: "marker-unheard-4721" })).body).toEqual({ data: [], next_cursor: null })
  const { data } = (await own("GET", "/audit_log?action=content.search")).body
  expect(data).toMatchObject([
    { after: { sequences: [late.sequence] } },
    { after: { sequences: [chat.sequence] } },
  ])
  expect(JSON.stringify(data)).not.toContain(other.sequence)
  // What was searched for and what was found are kept nowhere in plain, also where the request can be repeated.
  const key = { "idempotency-key": "search-once" }
  const path = `/v1/organizations/${organization}/content/search`
  expect((await call("POST", path, { text }, key)).body.data).toHaveLength(2)
  expect((await call("POST", path, { text }, key)).body).toEqual({ data: null, next_cursor: null })
  expect(isWritten(text)).toBe(false)
  expect(isWritten("marker-searched-4720")).toBe(false)
  for (const bad of [
    {},
    { text: " " },
    { text: "a".repeat(201) },
    { text, cursor: "seq_1" },
    { text, limit: 51 },
  ])
    expect((await search(bad)).status).toBe(422)
})

test("the request log says of each request what is kept of its content", async () => {
  await keep({ keep: "nothing" })
  const none = await decide("kept nowhere")
  await keep({ keep: "answers" })
  const answers = await decide("answers only")
  await keep({ keep: "evidence_and_answers" })
  const both = await decide("both")
  const deleted = await decide("deleted")
  expect((await own("DELETE", `/sequences/${deleted.sequence}/content`)).status).toBe(204)
  const states = async (): Promise<unknown[]> => {
    const { data } = (await own("GET", "/sequences?limit=4")).body
    return data.map(({ seq_id, content }: { seq_id: string; content: string }) => [seq_id, content])
  }
  await expect.poll(states).toEqual([
    [deleted.sequence, "deleted"],
    [both.sequence, "evidence_and_answers"],
    [answers.sequence, "answers"],
    [none.sequence, "none"],
  ])
  expect((await own("GET", `/sequences/${deleted.sequence}`)).body.data.content).toBe("deleted")
})

describe("the review queue of a question set", () => {
  test("has a random sample, and what its shadow answers differently", async () => {
    const set = { name: "sampled", model: "umpire-decide", questions: [urgent] }
    await own("POST", "/question_sets", set)
    await own("PUT", "/question_sets/sampled/labels/production", { version: 1 })
    const path = "/question_sets/sampled/review"
    const ask = async (input: string): Promise<Answer> => {
      const answered = await own("POST", "/question_sets/sampled/decide", { input })
      // Reading the content waits until it is stored, and with it the item.
      expect((await contentOf(answered)).body.data.evidence).toBe(input)
      return answered
    }
    await own("PATCH", path, { sample_rate: 1 })
    const audited = await ask("By chance")
    await own("PATCH", path, { sample_rate: 0 })
    await ask("By no chance")
    // A version that is never so sure abstains from what the published one answers.
    await own("PATCH", "/question_sets/sampled", { questions: [{ ...urgent, threshold: 1 }] })
    await own("PATCH", "/question_sets/sampled", { shadow: { version: 2, share: 1 } })
    const shadowed = await ask("Seen by the shadow")
    expect(shadowed.body.data.answers[0].abstained).toBe(false)
    const items = async (): Promise<unknown[]> => (await own("GET", path)).body.data
    await expect.poll(items).toMatchObject([
      { seq_id: shadowed.sequence, reason: "shadow_differs", evidence: "Seen by the shadow", version: 1 },
      { seq_id: audited.sequence, reason: "audit", evidence: "By chance", version: 1 },
    ])
  })

  test("has what the set abstained from; a label becomes an example, and is taken back", async () => {
    await own("POST", "/question_sets", {
      name: "doubtful",
      model: "umpire-decide",
      questions: [{ ...urgent, threshold: 1 }],
    })
    await own("PATCH", "/question_sets/doubtful/review", { sample_rate: 0 })
    const asked = await own("POST", "/question_sets/doubtful/decide", { input: "Is this clear?" })
    expect(asked.body.data.answers[0].abstained).toBe(true)
    // Reading the content waits until it is stored, and with it the item.
    expect((await contentOf(asked)).body.data.question_set).toMatchObject({ name: "doubtful", version: 1 })
    const path = "/question_sets/doubtful/review"
    const { data } = (await own("GET", path)).body
    expect(data).toMatchObject([
      { question: "urgent", reason: "abstained", evidence: "Is this clear?", answer: null, state: "open" },
    ])
    const item = `${path}/${data[0].id}`
    expect((await own("POST", item, { label: "yes" })).body.data.reviews).toMatchObject([{ label: "yes" }])
    const examples = async (): Promise<unknown> =>
      (await own("GET", "/question_sets/doubtful/examples")).body.data
    expect(await examples()).toMatchObject([
      { input: "Is this clear?", labels: { urgent: true }, source: "review" },
    ])
    expect((await own("GET", `${path}/summary`)).body.data).toMatchObject({
      open: 0,
      content: "kept",
      labelled_since_taught: 1,
      teaching_would_pay: false,
    })
    expect((await own("POST", item, { label: "no" })).status).toBe(409)
    await own("DELETE", `${item}/label`)
    expect(await examples()).toEqual([])
    expect((await own("POST", item, { decision: "skip" })).body.data.state).toBe("open")
    expect((await own("GET", path)).body.data).toEqual([])
  })
})
