/** What is kept is what the settings say, and what cannot be kept is counted; the request hears of neither. */
import { expect, test } from "vitest"
import { systemClock } from "../../base/clock.ts"
import type { Principal } from "../../contract/access.ts"
import { type ContentInput, type ContentMessage, contentLimits } from "../../contract/content.ts"
import { createContentCipher } from "../../store/content/cipher.ts"
import type { ContentRecord } from "../../store/content/journal.ts"
import { DroppedCounts } from "./dropped.ts"
import { type ContentPlan, type ContentLoggerDeps, createContentLogger, isSampled } from "./content-logger.ts"

const plan: ContentPlan = {
  keep: "evidence_and_answers",
  sampleRate: 1,
  retentionDays: 2,
  patterns: [],
  questionSet: null,
}
const cipher = createContentCipher([Buffer.alloc(32, 3)])
const principal = { kind: "key", id: "key_1" } as Principal
const verdict = { name: "team", verdict: "ann's", abstained: false, confidence: 0.9, threshold: null }

const start = {
  seqId: "seq_1",
  organizationId: "org_1",
  principal,
  startedMs: 1_000,
  endpoint: "decisions",
  tags: {},
}
const end = { model: "m", questionSet: null, answers: [], review: null, output: null }

function scene(changes: Partial<ContentLoggerDeps> = {}, plans: Partial<ContentPlan> = {}) {
  const records: ContentRecord[] = []
  const dropped = new DroppedCounts(systemClock)
  const contentLogger = createContentLogger({
    plans: { of: async () => ({ ...plan, ...plans }) },
    cipher,
    journal: { checkRoom: async () => undefined, append: async (record) => void records.push(record) },
    redaction: {
      run: async (_, __, texts) => ({
        texts: texts.map((text) => text.replaceAll("ann", "[name]")),
        count: 1,
      }),
    },
    dropped,
    hasDiskSpace: () => true,
    ...changes,
  })
  const keep = async (evidence = "for ann", seqId = "seq_1"): Promise<boolean> =>
    await contentLogger
      .begin({
        ...start,
        seqId,
        asked: () => ({
          evidence,
          questions: [
            {
              name: "team",
              type: "choice",
              instructions: "Is it ann's?",
              options: [{ value: "ann's", description: "ann or ann" }],
            },
          ],
          input: null,
        }),
      })
      .finish(() => ({ ...end, answers: [verdict] }))
  const converse = async (input: ContentInput, output: ContentMessage[] | null): Promise<boolean> =>
    await contentLogger
      .begin({ ...start, asked: () => ({ evidence: null, questions: [], input }) })
      .finish(() => ({ ...end, output }))
  const opened = (): unknown[] =>
    records.map(({ seq_id, organization_id, sealed }) => {
      const place = { organizationId: organization_id, seqId: seq_id }
      return JSON.parse(cipher.open(place, Buffer.from(sealed, "base64")) ?? "null")
    })
  return { keep, converse, records, dropped, opened }
}

test("a record says how long it lives and whose it is, and hides everything else", async () => {
  const { keep, records, opened } = scene()
  expect(await keep()).toBe(true)
  expect(records).toMatchObject([
    { seq_id: "seq_1", api_key_id: "key_1", expires_at: 1_000 + 2 * 86_400_000 },
  ])
  expect(JSON.stringify({ ...records[0], sealed: "" })).not.toContain("ann")
  expect(opened()).toMatchObject([{ evidence: "for ann", answers: [{ verdict: "ann's" }] }])
})

test("patterns redact every text: evidence, questions, options and answers", async () => {
  const { keep, opened } = scene({}, { patterns: [{ name: "name", pattern: "ann" }] })
  await keep()
  expect(JSON.stringify(opened())).not.toContain("ann")
  expect(opened()).toMatchObject([
    { evidence: "for [name]", answers: [{ verdict: "[name]'s" }], redactions: 1 },
  ])
})

const talk: ContentInput = {
  messages: [
    { role: "user", content: "for ann" },
    { role: "assistant", content: "", tool_calls: [{ id: "ann1", name: "ann", arguments: '{"to":"ann"}' }] },
    { role: "tool", content: "ann is in", tool_call_id: "ann1" },
  ],
  texts: [],
}
const said: ContentMessage[] = [{ role: "assistant", content: "ann it is", reasoning: "ann?" }]

test("patterns redact a conversation and what was generated, names and ids of calls too", async () => {
  const { converse, opened } = scene({}, { patterns: [{ name: "name", pattern: "ann" }] })
  expect(await converse(talk, said)).toBe(true)
  expect(JSON.stringify(opened())).not.toContain("ann")
  expect(opened()).toMatchObject([
    {
      input: {
        messages: [{ content: "for [name]" }, {}, { content: "[name] is in", tool_call_id: "[name]1" }],
      },
      output: [{ content: "[name] it is", reasoning: "[name]?" }],
    },
  ])
})

test("at the level of answers only what was generated is kept, and of an embedding nothing", async () => {
  const { converse, opened, dropped } = scene({}, { keep: "answers" })
  await converse({ messages: [], texts: ["for ann", null] }, null)
  expect(opened()).toEqual([])
  await converse(talk, said)
  expect(opened()).toMatchObject([{ input: null, output: said }])
  expect(dropped.totals().size).toBe(0)
})

test("what was generated at the level of answers is redacted by the question set, a verdict is not", async () => {
  const { converse, keep, records } = scene({}, { keep: "answers", questionSet: "private" })
  await converse(talk, said)
  await keep()
  expect(records.map(({ redact_with }) => redact_with)).toEqual(["private", null])
})

const kept = { keep: "answers" } as const
test.each([
  ["nothing is to be kept", {}, { keep: "nothing" } as const, false, {}],
  ["answers are kept without evidence", {}, kept, false, {}],
  ["there is no key", { cipher: createContentCipher([]) }, {}, false, {}],
  [
    "the settings are not known",
    { plans: { of: () => Promise.reject(new Error()) } },
    {},
    false,
    { settings: 1 },
  ],
  ["the disk is nearly full", { hasDiskSpace: () => false }, {}, false, { journal: 1 }],
  [
    "the journal is full",
    { journal: { checkRoom: () => Promise.reject(new Error()), append: async () => undefined } },
    {},
    false,
    { journal: 1 },
  ],
  [
    "it cannot be redacted in time",
    { redaction: { run: () => Promise.reject(new Error()) } },
    { patterns: [{ name: "name", pattern: "ann" }] },
    false,
    { redaction: 1 },
  ],
])("when %s, the request goes on and the count is right", async (_, changes, plans, isKept, counts) => {
  const { keep, dropped } = scene(changes, plans)
  expect(await keep()).toBe(isKept)
  expect(Object.fromEntries(dropped.totals())).toEqual(counts)
})

test("content at the limit is kept, and one byte more is dropped as too large", async () => {
  const { keep, records, dropped } = scene()
  await keep("")
  const room = contentLimits.recordBytesMax - textBytes(records[0])
  expect(await keep("x".repeat(room), "seq_2")).toBe(true)
  expect(await keep("x".repeat(room + 1), "seq_3")).toBe(false)
  expect(Object.fromEntries(dropped.totals())).toEqual({ too_large: 1 })
})

const textBytes = (record: ContentRecord | undefined): number =>
  Buffer.byteLength(
    cipher.open(
      { organizationId: "org_1", seqId: record?.seq_id ?? "" },
      Buffer.from(record?.sealed ?? "", "base64"),
    ) ?? "",
  )

test("the sample keeps its share, the same requests whoever asks", async () => {
  const ids = Array.from({ length: 10_000 }, (_, at) => `seq_${at}`)
  const sampled = ids.filter((id) => isSampled("content", id, 0.25))
  expect(sampled.length).toBeGreaterThan(2_300)
  expect(sampled.length).toBeLessThan(2_700)
  expect(ids.filter((id) => isSampled("content", id, 0.25))).toEqual(sampled)
  const { keep, records } = scene({}, { sampleRate: 0.25 })
  for (const id of ids.slice(0, 100)) await keep("text", id)
  expect(records.map(({ seq_id }) => seq_id)).toEqual(sampled.filter((id) => ids.indexOf(id) < 100))
})
