/** Examples of question sets: rows and files, what is named as wrong, limits, and their deletion. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { questionSetLimits } from "../src/contract/question-sets/content.ts"
import { sealTask } from "../src/control/upkeep.ts"
import { openTestDatabase } from "./database.ts"
import { storeOperator } from "./operator.ts"
import { type Answer, type Platform, platformCipher, seeder, startPlatform } from "./platform.ts"

let platform: Platform
let bearer: string
let organizationId: string
let path: string

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase())
})
afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

beforeEach(async () => {
  const seed = seeder(platform)
  organizationId = await seed.organization("Examples", await seed.billingAccount())
  const owner = await seed.user(`${organizationId}@example.com`)
  await seed.member(organizationId, owner, "primary_owner")
  bearer = await seed.session(owner)
  path = `/v1/organizations/${organizationId}/question_sets`
  await send("POST", "", { name: "mail", model: "open", questions })
})

async function send(
  method: string,
  rest: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return await platform.send(method, path + rest, {
    bearer,
    headers,
    ...(body === undefined ? {} : { body }),
  })
}
const add = async (rows: unknown[], replace = false): Promise<Answer> =>
  await send("POST", "/mail/examples", { rows, replace })
const upload = async (text: string, type: string, query = ""): Promise<Answer> =>
  await send("POST", `/mail/examples/upload${query}`, text, { "content-type": type })
const listed = async (): Promise<
  { input: string; labels: Record<string, unknown>; split: string; id: string }[]
> => (await send("GET", "/mail/examples?limit=200")).body.data

const rude = { type: "predicate", name: "rude", instructions: "Is it rude?" }
const team = {
  type: "choice",
  name: "team",
  instructions: "Which?",
  choices: [{ value: "a" }, { value: true }],
}
const mood = {
  type: "score",
  name: "mood",
  instructions: "How?",
  levels: [{ label: "calm" }, { label: "hot" }],
}
const questions = [rude, team, mood]
const nothing = { added: 0, updated: 0, duplicates: 0, contradictions_count: 0, refused_count: 0 }

test("rows are kept with their labels in one form, newest first", async () => {
  const { status, body } = await add([
    { input: "Go away", labels: { rude: "YES", team: "true", mood: "hot" } },
    { input: "Thanks", labels: { rude: false, team: "a", mood: 0 } },
  ])
  expect([status, body.data]).toEqual([200, { ...nothing, added: 2, contradictions: [], refused: [] }])
  expect((await listed()).map(({ input, labels }) => [input, labels])).toEqual([
    ["Thanks", { rude: false, team: "a", mood: 0 }],
    ["Go away", { rude: true, team: true, mood: 1 }],
  ])
  expect((await send("GET", "/mail")).body.data.counts.examples).toBe(2)
})

const found = async (query: string): Promise<Answer> => await send("GET", `/mail/examples?${query}`)

test("examples are found by a text in them, whatever its case, page by page", async () => {
  await add([
    { input: "Where is my Parcel?", labels: { rude: false } },
    { input: "Thank you", labels: { rude: false } },
    { input: "the PARCEL is late, 100 % late", labels: { rude: true } },
  ])
  const first = (await found("text=parcel&limit=1")).body
  expect(first.data).toMatchObject([{ input: "the PARCEL is late, 100 % late" }])
  const second = (await found(`text=parcel&limit=1&cursor=${first.next_cursor}`)).body
  expect(second.data).toMatchObject([{ input: "Where is my Parcel?" }])
  expect((await found(`text=parcel&cursor=${second.next_cursor}`)).body).toEqual({
    data: [],
    next_cursor: null,
  })
  // Signs of patterns are signs.
  expect((await found("text=100%20%25")).body.data).toHaveLength(1)
  expect((await found("text=_arcel")).body.data).toEqual([])
  expect((await found(`text=${"a".repeat(201)}`)).status).toBe(400)
  expect((await found("text=%20")).status).toBe(400)
})

test("a known text is a duplicate, gets more labels, or is named as a contradiction", async () => {
  await add([{ input: "Go away", labels: { rude: true } }])
  const [{ id } = { id: "" }] = await listed()
  expect((await add([{ input: " Go away ", labels: { rude: true } }])).body.data).toMatchObject({
    ...nothing,
    duplicates: 1,
  })
  expect((await add([{ input: "Go away", labels: { team: "a" } }])).body.data).toMatchObject({
    ...nothing,
    updated: 1,
  })
  const contradicted = await add([{ input: "Go away", labels: { rude: false } }])
  expect(contradicted.body.data).toMatchObject({
    ...nothing,
    contradictions_count: 1,
    contradictions: [{ row: 1, id, question: "rude", before: true, now: false }],
  })
  expect((await listed())[0]?.labels).toEqual({ rude: true, team: "a" })
  await add([{ input: "Go away", labels: { rude: false } }], true)
  expect((await listed())[0]?.labels).toEqual({ rude: false, team: "a" })
})

test("rows of one request that contradict each other are named too", async () => {
  const { body } = await add([
    { input: "Go away", labels: { rude: true } },
    { input: "Go away", labels: { rude: false } },
  ])
  expect(body.data).toMatchObject({
    added: 1,
    contradictions: [{ row: 2, id: null, question: "rude", before: true, now: false }],
  })
})

test("answers of a teacher stand beside people's labels and contradict nobody", async () => {
  const teacher = "gpt-large"
  await add([{ input: "Go away", labels: { rude: true } }])
  const [before] = await listed()
  const told = await add([
    { input: "Go away", labels: { rude: false, team: "a" }, teacher },
    { input: "Thanks", labels: { rude: false }, teacher },
    { input: "Thanks", labels: { rude: false }, teacher },
    { input: "Hello", labels: { other: true }, teacher },
  ])
  expect(told.body.data).toMatchObject({
    added: 1,
    updated: 1,
    duplicates: 1,
    refused_count: 1,
    contradictions: [],
  })
  const asked = expect.stringMatching(/^[0-9a-f]{16}$/) as string
  const answer = (label: unknown) => ({ label, model: teacher, confidence: null, cost_usd: null, asked })
  expect(await listed()).toEqual([
    expect.objectContaining({
      input: "Thanks",
      labels: {},
      teacher_labels: { rude: answer(false) },
      source: "teacher",
    }),
    { ...before, teacher_labels: { rude: answer(false), team: answer("a") } },
  ])
  // A person decides anew, whatever the teacher said.
  expect((await add([{ input: "Thanks", labels: { rude: true } }])).body.data).toMatchObject({
    updated: 1,
    contradictions: [],
  })
  expect((await listed())[0]).toMatchObject({
    labels: { rude: true },
    teacher_labels: { rude: answer(false) },
  })
  const lines = `${JSON.stringify({ input: "Bye", labels: { rude: false }, teacher })}\n{"input":"No","teacher":"x","rude":true}\n`
  expect((await upload(lines, "application/jsonl")).body.data).toMatchObject({
    added: 1,
    refused: [{ row: 2, reason: "the set has no question teacher" }],
  })
  expect((await listed())[0]).toMatchObject({
    input: "Bye",
    labels: {},
    teacher_labels: { rude: answer(false) },
  })
})

test.each<[string, unknown, RegExp]>([
  ["an unknown question", { other: true }, /no question other/],
  ["a predicate that is neither", { rude: "maybe" }, /"maybe" is no answer to rude/],
  ["a value that is no choice", { team: "b" }, /"b" is no answer to team/],
  ["a level that is not there", { mood: 2 }, /2 is no answer to mood/],
  ["no label", {}, /no label/],
])("a row with %s is refused with its reason, others are kept", async (_, labels, reason) => {
  const { body } = await add([
    { input: "bad", labels },
    { input: "good", labels: { rude: true } },
  ])
  expect(body.data).toMatchObject({ added: 1, refused_count: 1 })
  expect(body.data.refused[0].reason).toMatch(reason)
})

describe("files", () => {
  test("CSV with quotes, line breaks, a byte order mark and empty cells", async () => {
    const csv = '\uFEFFinput,rude,team\r\n"Go ""away"",\nnow",yes,\r\nThanks,no,a\r\n\r\n'
    expect((await upload(csv, "text/csv; charset=utf-8")).body.data).toMatchObject({
      added: 2,
      refused_count: 0,
    })
    expect((await listed()).map(({ input, labels }) => [input, labels])).toEqual([
      ["Thanks", { rude: false, team: "a" }],
      ['Go "away",\nnow', { rude: true }],
    ])
  })

  test("JSON lines, with labels apart or beside the text", async () => {
    const lines = '{"input":"one","labels":{"rude":true}}\n\n{"text":"two","team":true,"mood":"calm"}\n'
    expect((await upload(lines, "application/jsonl")).body.data).toMatchObject({ added: 2, refused_count: 0 })
    expect((await listed())[0]).toMatchObject({ input: "two", labels: { team: true, mood: 0 } })
  })

  test("a set with one question takes a column called label", async () => {
    await send("PATCH", "/mail", { questions: [rude] })
    await upload("input,label\nHello,no\n", "text/csv")
    expect((await listed())[0]).toMatchObject({ labels: { rude: false } })
  })

  test("what is read twice changes nothing", async () => {
    const csv = "input,rude\nHello,no\nGo,yes\n"
    await upload(csv, "text/csv")
    expect((await upload(csv, "text/csv")).body.data).toMatchObject({ ...nothing, duplicates: 2 })
    expect((await upload("input,rude\nGo,no\n", "text/csv", "?replace=true")).body.data.updated).toBe(1)
  })

  test.each<[string, string, string, number]>([
    ["JSON", "[]", "application/json", 415],
    ["no content type", "", "", 415],
    ["a quote that does not end", 'input,rude\n"Hello,no\n', "text/csv", 422],
    ["a column twice", "input,rude,rude\nHello,no,no\n", "text/csv", 422],
    ["a row with more cells", "input,rude\nHello,no,yes\n", "text/csv", 422],
    ["a line that is no object", "[1]\n", "application/jsonl", 422],
  ])("%s is refused", async (_, text, type, status) => {
    expect((await upload(text, type)).status).toBe(status)
  })

  test("rows that cannot be used are named by their number", async () => {
    const { body } = await upload("input,rude\n,no\nHello,no\n", "text/csv")
    expect(body.data).toMatchObject({ added: 1, refused: [{ row: 1, reason: "input: the text is blank" }] })
  })
})

const line = (input: string, labels: object): string => JSON.stringify({ input, labels })
const texts = (count: number): string[] =>
  Array.from({ length: count }, (_, at) => line(`Text ${at}`, { rude: at % 2 === 0 }))

describe("a file that is written in parts", () => {
  test.each([500, 501, 1_001])("has %i rows, and is known when it is sent again", async (count) => {
    const file = texts(count).join("\n")
    expect((await upload(file, "application/jsonl")).body.data).toMatchObject({ ...nothing, added: count })
    expect((await upload(file, "application/jsonl")).body.data).toMatchObject({
      ...nothing,
      duplicates: count,
    })
    expect((await send("GET", "/mail")).body.data.counts.examples).toBe(count)
  })

  test("has rows about one text far from each other: they count as of one request", async () => {
    const rows = [
      ...texts(600),
      line("Text 0", { rude: true }),
      line("Text 1", { rude: true }),
      line("Text 2", { team: "a" }),
      line("Text 3", { rude: "perhaps" }),
    ]
    const { body } = await upload(rows.join("\n"), "application/jsonl")
    const counts = { added: 600, updated: 0, duplicates: 1, contradictions_count: 1, refused_count: 1 }
    expect(body.data).toMatchObject({ ...counts, contradictions: [{ row: 602 }], refused: [{ row: 604 }] })
    const replaced = await upload(rows.join("\n"), "application/jsonl", "?replace=true")
    expect(replaced.body.data).toMatchObject({ added: 0, updated: 1, contradictions_count: 1 })
  })

  test("has no room in the end: none of its parts is kept", async () => {
    const full = questionSetLimits.examplesMax
    const rows = texts(full + 1)
    const [before, more] = [rows.slice(0, full - 500), rows.slice(full - 500)]
    expect((await upload(before.join("\n"), "application/jsonl")).status).toBe(200)
    expect((await upload(more.join("\n"), "application/jsonl")).status).toBe(409)
    expect((await send("GET", "/mail")).body.data.counts.examples).toBe(full - 500)
    const unusable = line("No answer", { rude: "perhaps" })
    const fits = await upload([...more.slice(1), unusable].join("\n"), "application/jsonl")
    expect(fits.body.data).toMatchObject({ added: 500, refused_count: 1 })
  })
})

test("the split is decided by the text alone, for about one third", async () => {
  const rows = Array.from({ length: 300 }, (_, at) => ({
    input: `row ${at}`,
    labels: { rude: at % 2 === 0 },
  }))
  await add(rows)
  const splits = async (): Promise<Map<string, string>> => {
    const all = new Map<string, string>()
    for (let cursor = ""; cursor !== null;) {
      const page = (await send("GET", `/mail/examples?limit=100${cursor}`)).body
      for (const { input, split } of page.data) all.set(input, split)
      if (page.next_cursor === null) break
      cursor = `&cursor=${page.next_cursor}`
    }
    return all
  }
  const before = await splits()
  expect(before.size).toBe(300)
  const held = [...before.values()].filter((split) => split === "held_out").length
  expect(held).toBeGreaterThan(60)
  expect(held).toBeLessThan(140)
  const only = (await send("GET", "/mail/examples?limit=200&split=held_out")).body.data
  expect(only).toHaveLength(held)
  await send("DELETE", "/mail")
  await send("POST", "", { name: "mail", model: "open", questions })
  await add(rows.toReversed())
  expect(await splits()).toEqual(before)
})

test("an example is labelled anew, a label is removed, and the example is deleted", async () => {
  await add([{ input: "Go away", labels: { rude: true, team: "a" } }])
  const [{ id } = { id: "" }] = await listed()
  const changed = await send("PATCH", `/mail/examples/${id}`, { labels: { rude: false, team: null } })
  expect(changed.body.data.labels).toEqual({ rude: false })
  expect((await send("PATCH", `/mail/examples/${id}`, { labels: { rude: "x" } })).status).toBe(422)
  expect((await send("DELETE", `/mail/examples/${id}`)).status).toBe(204)
  expect((await send("DELETE", `/mail/examples/${id}`)).status).toBe(404)
})

describe("limits", () => {
  const atLimit = "x".repeat(questionSetLimits.inputBytesMax)
  test.each<[string, unknown, number]>([
    ["a text of 64 KiB", { rows: [{ input: atLimit, labels: { rude: true } }] }, 200],
    ["a text over 64 KiB", { rows: [{ input: `${atLimit}x`, labels: { rude: true } }] }, 422],
    ["a blank text", { rows: [{ input: " ", labels: { rude: true } }] }, 422],
    ["U+0000", { rows: [{ input: "a\u0000", labels: { rude: true } }] }, 422],
    ["no rows", { rows: [] }, 422],
    ["1000 rows", { rows: rowsOf(questionSetLimits.examplesPerRequestMax) }, 200],
    ["1001 rows", { rows: rowsOf(questionSetLimits.examplesPerRequestMax + 1) }, 422],
  ])("%s", async (_, body, status) => {
    expect((await send("POST", "/mail/examples", body)).status).toBe(status)
  })

  test("10,000 examples fit a set and one more does not", async () => {
    const lines = rowsOf(questionSetLimits.examplesMax).map((row) => JSON.stringify(row))
    expect((await upload(lines.join("\n"), "application/jsonl")).body.data.added).toBe(
      questionSetLimits.examplesMax,
    )
    const { status, body } = await add([{ input: "one more", labels: { rude: true } }])
    expect([status, body.error.code]).toEqual([409, "conflict"])
    expect((await add([{ input: "row 1", labels: { rude: true } }])).status).toBe(200)
  })

  afterEach(async () => {
    await platform.database.query("DELETE FROM question_sets WHERE organization_id = $1", [organizationId])
  })

  test("50,000 examples and cases fit an organization and one more does not", async () => {
    await fill(questionSetLimits.organizationRowsMax - 2, 3)
    expect((await freezeRude("a case")).status).toBe(200)
    expect((await add([{ input: "the last", labels: { rude: true } }])).status).toBe(200)
    for (const { status, body } of [
      await add([{ input: "one more", labels: { rude: true } }]),
      await freezeRude("one more"),
    ]) {
      expect([status, body.error.code]).toEqual([409, "conflict"])
      expect(body.error.message).toContain("50001 examples and cases; at most 50000")
    }
    expect((await listed()).map(({ input }) => input)).toEqual(["the last"])
  })

  test("128 MiB of texts and labels fit an organization and one byte more does not", async () => {
    const labels = { rude: true }
    const last = { input: "y".repeat(100), labels }
    const bytes = last.input.length + JSON.stringify(labels).length
    const count = 64
    const each = questionSetLimits.organizationRowBytesMax / count
    await fill(count - 1, each)
    const filler = each - bytes
    await platform.database.query(
      `INSERT INTO question_set_cases (id, set_id, input, input_hash, expected, created_at)
       SELECT s.id || 'case', s.id, repeat('x', $2), '0', '{}', now()
       FROM question_sets s WHERE s.organization_id = $1 AND s.name = 'other'`,
      [organizationId, filler - 2],
    )
    const { status, body } = await add([{ ...last, input: `${last.input}y` }])
    expect([status, body.error.code]).toEqual([409, "conflict"])
    expect(body.error.message).toContain("134217729 bytes of examples and cases; at most 134217728")
    expect((await add([last])).status).toBe(200)
    const [{ id } = { id: "" }] = await listed()
    const relabelled = await send("PATCH", `/mail/examples/${id}`, { labels: { team: "a" } })
    expect([relabelled.status, relabelled.body.error?.code]).toEqual([409, "conflict"])
  })

  test("a file over 8 MiB is 413", async () => {
    const { status } = await upload("x".repeat(questionSetLimits.uploadBytesMax + 1), "text/csv")
    expect(status).toBe(413)
  })
})

const stored = async (): Promise<string> => {
  const tables = ["question_set_examples", "question_set_cases"]
  const rows = await Promise.all(
    tables.map((table) => platform.database.query(`SELECT * FROM ${table} WHERE set_id LIKE 'qs_%'`)),
  )
  return JSON.stringify(rows)
}

const others = async (): Promise<unknown> => (await send("GET", "/other/examples?limit=200")).body.data

describe("texts at rest", () => {
  test("examples and cases are encrypted, and equal texts are still found", async () => {
    await add([{ input: "a secret text", labels: { rude: true } }])
    await freezeRude("a secret case")
    expect(await stored()).not.toContain("secret")
    expect((await listed()).map(({ input }) => input)).toEqual(["a secret text"])
    const { body } = await send("GET", "/mail/cases")
    expect(body.data).toMatchObject([{ input: "a secret case" }])
    const again = await add([{ input: "a secret text", labels: { rude: true } }])
    expect(again.body.data).toMatchObject({ added: 0, duplicates: 1 })
    expect((await freezeRude("a secret case")).body.data).toEqual({ added: 0, updated: 1 })
  })

  test("those that were stored before there was a key are read, and encrypted by and by", async () => {
    await fill(120, 100)
    const before = await others()
    await sealTask(platform.database, platformCipher).run()
    expect(await stored()).not.toContain("x".repeat(20))
    expect(await others()).toEqual(before)
    expect(before).toHaveLength(120)
  })

  test("a text that was moved to another row cannot be read there", async () => {
    await add([
      { input: "one", labels: { rude: true } },
      { input: "two", labels: { rude: true } },
    ])
    const [{ id } = { id: "" }] = await listed()
    await platform.database.query(
      "UPDATE question_set_examples e SET input = o.input FROM question_set_examples o WHERE e.id = $1 AND o.set_id = e.set_id AND o.id <> e.id",
      [id],
    )
    expect((await send("GET", "/mail/examples")).status).toBe(409)
  })
})

/** Rows of another set of the organization, each with an empty object of labels. */
async function fill(rows: number, bytesEach: number): Promise<void> {
  await send("POST", "", { name: "other", model: "open", questions })
  await platform.database.query(
    `INSERT INTO question_set_examples (id, set_id, input, input_hash, split, labels, created_at, updated_at)
     SELECT s.id || n, s.id, repeat('x', $3), n::text, 'train', '{}', now(), now()
     FROM question_sets s, generate_series(1, $2) n WHERE s.organization_id = $1 AND s.name = 'other'`,
    [organizationId, rows, bytesEach - 2],
  )
}
async function freezeRude(input: string): Promise<Answer> {
  return await send("POST", "/mail/cases", { cases: [{ input, expected: { rude: true } }] })
}

function rowsOf(count: number): { input: string; labels: { rude: boolean } }[] {
  return Array.from({ length: count }, (_, at) => ({ input: `row ${at}`, labels: { rude: true } }))
}

test("frozen cases are replaced by text, checked against the questions, and deleted", async () => {
  const freeze = async (expected: unknown): Promise<Answer> =>
    await send("POST", "/mail/cases", { cases: [{ input: "Go away", expected }] })
  expect((await freeze({ rude: "yes" })).body.data).toEqual({ added: 1, updated: 0 })
  expect((await freeze({ rude: true, team: "a" })).body.data).toEqual({ added: 0, updated: 1 })
  expect((await freeze({ other: true })).status).toBe(422)
  const { data } = (await send("GET", "/mail/cases")).body
  expect(data).toMatchObject([{ input: "Go away", expected: { rude: true, team: "a" } }])
  expect((await send("DELETE", `/mail/cases/${data[0].id}`)).status).toBe(204)
  expect((await send("GET", "/mail/cases")).body.data).toEqual([])
})

const casesOf = (count: number, letters = 0) =>
  Array.from({ length: count }, (_, at) => ({
    input: `Text ${at} `.padEnd(letters, "word "),
    expected: { rude: at % 2 === (0 as unknown) },
  }))
const putCases = async (cases: object[]) => await send("POST", "/mail/cases", { cases })
const keptCases = async (): Promise<number> => (await send("GET", "/mail")).body.data.counts.cases

describe("cases that are written in parts", () => {
  test.each([
    [500, 0],
    [501, 0],
    [1_000, 0],
    // Two parts by their bytes.
    [17, 63 * 1024],
  ])("are %i, and known when they are sent again", async (count, letters) => {
    const cases = casesOf(count, letters)
    expect((await putCases(cases)).body.data).toEqual({ added: count, updated: 0 })
    expect((await putCases(cases)).body.data).toEqual({ added: 0, updated: count })
    expect(await keptCases()).toBe(count)
  })

  test("with a text in two of them, the last answers stand", async () => {
    const again = { input: "Text 450 ", expected: { rude: false } }
    expect((await putCases([...casesOf(600), again])).body.data).toEqual({ added: 600, updated: 1 })
    const { data } = (await send("GET", "/mail/cases?limit=200")).body
    const found = data.filter(({ input }: { input: string }) => input === again.input)
    expect(found).toMatchObject([again])
  })

  test("of which one has no room or a wrong answer are not kept at all", async () => {
    expect((await putCases(casesOf(1))).status).toBe(200)
    const others = casesOf(1_000).map((one) => ({ ...one, input: `Other ${one.input}` }))
    expect((await putCases(others)).status).toBe(409)
    const wrong = { input: "No answer", expected: { rude: "perhaps" } }
    expect((await putCases([...others.slice(0, 600), wrong])).status).toBe(422)
    expect(await keptCases()).toBe(1)
    expect((await putCases(others.slice(1))).body.data).toEqual({ added: 999, updated: 0 })
  })
})

const ownCases = (which: number) => casesOf(600).map((one) => ({ ...one, input: `${which}: ${one.input}` }))

test("uploads of cases at once leave no more than fit, and what a refused one has written is audited", async () => {
  const answers = await Promise.all([1, 2, 3].map(async (which) => await putCases(ownCases(which))))
  expect(answers.map(({ status }) => status)).toContain(409)
  expect(await keptCases()).toBeLessThanOrEqual(1_000)
  const rows = await platform.database.query(
    "SELECT after::text AS after FROM audit_log WHERE action = 'question_set.cases.add' AND organization_id = $1",
    [organizationId],
  )
  const added = rows.map(({ after }) => JSON.parse(String(after)) as { added: number })
  expect(added.reduce((sum, one) => sum + one.added, 0)).toBe(await keptCases())
})

test("cases with the same text in one request are one, with the last answers", async () => {
  const cases = [true, false].flatMap((rude) => [
    { input: "Go away", expected: { rude } },
    { input: " Go away", expected: { rude } },
  ])
  expect((await send("POST", "/mail/cases", { cases })).body.data).toEqual({ added: 1, updated: 3 })
  const { data } = (await send("GET", "/mail/cases")).body
  expect(data).toMatchObject([{ expected: { rude: false } }])
})

test("deleting the organization deletes its sets, examples and cases", async () => {
  await add([{ input: "secret text", labels: { rude: true } }])
  await send("POST", "/mail/cases", { cases: [{ input: "secret text", expected: { rude: true } }] })
  const { database, ids, invalidate } = platform
  await storeOperator({ database, ids, invalidate }).deleteOrganization({
    params: { org_id: organizationId },
  })
  for (const table of [
    "question_sets",
    "question_set_versions",
    "question_set_examples",
    "question_set_cases",
  ]) {
    const rows = await database.query(`SELECT to_jsonb(t)::text AS row FROM ${table} t`)
    expect(JSON.stringify(rows), table).not.toContain("secret text")
  }
  expect(
    await database.query("SELECT FROM question_sets WHERE organization_id = $1", [organizationId]),
  ).toEqual([])
})
