import { expect, test } from "vitest"
import { readChoice, readPredicate } from "../answers.ts"
import { answerConfidence, loadArtefact } from "./apply.ts"
import type { TaughtArtefact } from "./artefact.ts"
import { featuresLater } from "./features.ts"
import { type QuestionKind, type TaughtQuestion, type TaughtRow, TeachRefusal, splitOf } from "./question.ts"
import { rowHash } from "./row-hash.ts"
import { seededRandom } from "./random.ts"
import { teach } from "./teach.ts"

const SIZE = 6

interface World {
  readonly kind: QuestionKind
  readonly optionCount: number
  readonly rows: number
  /** How much of the label the margins and the vectors know. */
  readonly marginSignal: number
  readonly vectorSignal: number
  readonly seed?: number
}

/** Rows whose label is seen, more or less, in the margins and in the first numbers of the vector. */
function makeRows({ kind, optionCount, rows, marginSignal, vectorSignal, seed = 7 }: World): TaughtRow[] {
  const random = seededRandom(seed)
  const noise = (): number => random() + random() + random() - 1.5
  return Array.from({ length: rows }, (_, index) => {
    const label = Math.floor(random() * optionCount)
    const is = (option: number): number => (option === label ? 1 : 0)
    const text = `row ${seed} ${index}`
    const hash = rowHash(text)
    return {
      hash,
      split: splitOf(hash),
      text,
      label,
      margins:
        kind === "predicate"
          ? [marginSignal * (is(0) - is(1)) + noise()]
          : Array.from({ length: optionCount }, (_option, option) => marginSignal * is(option) + noise()),
      vector: Float32Array.from({ length: SIZE }, (_number, at) => vectorSignal * is(at) + 0.3 * noise()),
    }
  })
}

const questionOf = (kind: QuestionKind, optionCount: number): TaughtQuestion => ({
  kind,
  options:
    kind === "predicate" ? ["yes", "no"] : Array.from({ length: optionCount }, (_, at) => `option ${at}`),
  optionVectors: null,
  emptyMargins: null,
})

const options = { modelVersion: "test-1" } as const
const choice = { kind: "choice", optionCount: 4, rows: 150, marginSignal: 1, vectorSignal: 1 } as const

/** Null teaches nothing. */
function accuracyOf(artefact: TaughtArtefact | null, rows: readonly TaughtRow[]): number {
  const taught = artefact && loadArtefact(artefact)
  const right = rows.filter(({ margins, text, vector, label }) => {
    const moved = taught
      ? taught.apply(margins, { features: featuresLater(text), vector })
      : Float64Array.from(margins)
    if (moved.length === 1) return readPredicate(moved[0] ?? 0) >= 0.5 === (label === 0)
    return readChoice(moved).winner === label
  })
  return right.length / rows.length
}

test("vectors that know the answer make a head, and unseen rows get better answers", async () => {
  const artefact = await teach(questionOf("choice", 4), makeRows(choice), options)
  expect(artefact.form).toMatch(/head/)
  const { before, after } = artefact.crossValidated
  expect(after.accuracy.low).toBeGreaterThan(before.accuracy.high)
  expect(accuracyOf(artefact, makeRows({ ...choice, rows: 300, seed: 8 }))).toBeGreaterThan(0.9)
})

test("a predicate is taught like a choice of two", async () => {
  const world = { kind: "predicate", optionCount: 2, rows: 120, marginSignal: 0.3, vectorSignal: 1 } as const
  const artefact = await teach(questionOf("predicate", 2), makeRows(world), options)
  expect(artefact.form).toMatch(/head/)
  expect(accuracyOf(artefact, makeRows({ ...world, rows: 300, seed: 8 }))).toBeGreaterThan(0.9)
})

test.each(["predicate", "choice"] as const)(
  "40 labels of which vectors and words know nothing cost a %s no answers",
  async (kind) => {
    const optionCount = kind === "predicate" ? 2 : 4
    const blind = { kind, optionCount, rows: 40, marginSignal: 1.5, vectorSignal: 0 } as const
    for (const seed of [1, 2, 3]) {
      const taught = await teach(questionOf(kind, optionCount), makeRows({ ...blind, seed }), options)
      const rows = makeRows({ ...blind, rows: 500, seed: seed + 10 })
      expect(accuracyOf(taught, rows)).toBeGreaterThan(accuracyOf(null, rows) - 0.03)
    }
  },
)

/** Neither margins nor vectors know the answer; a field of the text does. */
function makeTickets(rows: number, seed: number): TaughtRow[] {
  const tiers = ["gold", "silver", "bronze"]
  const words = "parcel invoice login screen refund app update 배송 환불 로그인 Rechnung Anmeldung".split(" ")
  return makeRows({ ...choice, optionCount: 3, rows, marginSignal: 0, vectorSignal: 0, seed }).map(
    (row, at) => {
      const random = seededRandom(seed * 1000 + at)
      const body = Array.from({ length: 8 }, () => words[Math.floor(random() * words.length)]).join(" ")
      const text = JSON.stringify({ id: at, customer_tier: tiers[row.label], body })
      return { ...row, text, hash: rowHash(text), split: "train" as const }
    },
  )
}

test("a rule over a field of JSON evidence is learnt from 40 labels, though no vector knows it", async () => {
  const artefact = await teach(questionOf("choice", 3), makeTickets(40, 1), options)
  expect(artefact.form).toMatch(/words/)
  expect(accuracyOf(artefact, makeTickets(300, 2))).toBeGreaterThan(0.95)
})

/** What is asked for, beginnings and ends of one language; nothing stands between them. */
const unspaced = {
  Japanese: [
    ["返金してほしい", "荷物が届かない", "ログインできない"],
    ["昨日から", "お世話になります。", "急ぎですが", "三回目ですが、", "アプリで"],
    ["のですが。", "ので確認をお願いします", "状態です！", "と家族が言っています", "みたいです"],
  ],
  Chinese: [
    ["要求退款", "包裹还没到", "登录不了"],
    ["从昨天开始", "您好，", "麻烦看一下，", "第三次了，", "在应用里"],
    ["请尽快处理。", "谢谢", "真让人着急！", "我家人说的", "怎么办？"],
  ],
  Korean: [
    ["환불해주세요", "택배가안왔어요", "로그인이안돼요"],
    ["어제부터", "안녕하세요", "급한데", "세번째인데", "앱에서"],
    ["확인부탁드립니다", "감사합니다", "정말답답해요", "가족이그러네요", "어떻게하죠"],
  ],
  Thai: [
    ["ขอเงินคืน", "พัสดุยังไม่มา", "เข้าสู่ระบบไม่ได้"],
    ["ตั้งแต่เมื่อวาน", "สวัสดีค่ะ", "ด่วนมาก", "ครั้งที่สามแล้ว", "ในแอป"],
    ["ช่วยตรวจสอบด้วย", "ขอบคุณค่ะ", "หงุดหงิดมาก", "แฟนบอกมา", "ทำยังไงดี"],
  ],
} as const

test.each(Object.entries(unspaced))(
  "words of %s, which has no spaces between them, are learnt from 40 labels",
  async (_, [asked, beginnings, ends]) => {
    const made = (rows: number, seed: number): TaughtRow[] => {
      const random = seededRandom(seed)
      const pick = (some: readonly string[]): string => some[Math.floor(random() * some.length)] ?? ""
      return Array.from({ length: rows }, (_row, at) => {
        const label = Math.floor(random() * asked.length)
        const text = `${pick(beginnings)}${at % 7}${pick(beginnings)}${asked[label]}${pick(ends)}`
        return { hash: rowHash(text), split: "train", text, label, margins: [0, 0, 0], vector: null }
      })
    }
    const artefact = await teach(questionOf("choice", 3), made(40, 1), options)
    expect(artefact.form).toMatch(/words/)
    expect(accuracyOf(artefact, made(300, 2))).toBeGreaterThan(0.95)
  },
)

/** Two of the fields decide. */
function makeForms(rows: number, seed: number): TaughtRow[] {
  const random = seededRandom(seed)
  const pick = (name: string, count: number): string => `${name}${Math.floor(random() * count)}`
  return Array.from({ length: rows }, () => {
    const [tier, product] = [pick("tier", 3), pick("product", 4)]
    const others = Object.fromEntries(["a", "b", "c", "d", "e"].map((name) => [name, pick(name, 4)]))
    const text = JSON.stringify({ ...others, tier, seats: Math.floor(random() * 50), product })
    const label = tier === "tier0" ? 0 : product === "product0" ? 1 : 2
    return { hash: rowHash(text), split: "train", text, label, margins: [0, 0, 0], vector: null }
  })
}

test("a rule over two fields is learnt from 60 labels, though five others and numbers stand beside them", async () => {
  const artefact = await teach(questionOf("choice", 3), makeForms(60, 1), options)
  expect(accuracyOf(artefact, makeForms(500, 2))).toBeGreaterThan(0.9)
})

test("options without an example keep the odds that the model gives them", async () => {
  const rows = makeRows({ ...choice, rows: 60, marginSignal: 2 }).filter(({ label }) => label < 3)
  const taught = loadArtefact(await teach(questionOf("choice", 4), rows, options))
  const unseen = makeRows({ ...choice, rows: 300, marginSignal: 3, seed: 8 }).filter(
    ({ label }) => label === 3,
  )
  const isAnswered = ({ margins, text, vector }: TaughtRow): boolean =>
    readChoice(taught.apply(margins, { features: featuresLater(text), vector })).winner === 3
  expect(unseen.filter(isAnswered).length / unseen.length).toBeGreaterThan(0.5)
})

test("without rows that are held out, each row is judged by heads that did not see it", async () => {
  const rows = makeRows(choice).map((row) => ({ ...row, split: "train" as const }))
  const {
    rows: counted,
    heldOut,
    heldOutAnswers,
    crossValidated,
  } = await teach(questionOf("choice", 4), rows, options)
  expect(counted).toEqual({ train: 150, heldOut: 0 })
  expect(heldOut).toBeNull()
  expect(heldOutAnswers).toHaveLength(150)
  const right = heldOutAnswers.filter(({ isRight }) => isRight).length
  expect(right / 150).toBeCloseTo(crossValidated.after.accuracy.value, 10)
})

test("a head that knows its training rows by heart is not surer than it is right", async () => {
  const world = { ...choice, marginSignal: 0.5, vectorSignal: 0.35, rows: 90 }
  const artefact = await teach(questionOf("choice", 4), makeRows(world), options)
  expect(artefact.form).toMatch(/head/)
  const rows = makeRows({ ...world, rows: 1000, seed: 8 })
  const taught = loadArtefact(artefact)
  const sure = rows.map(({ margins, text, vector }) =>
    answerConfidence("choice", taught.apply(margins, { features: featuresLater(text), vector })),
  )
  const meanSure = sure.reduce((sum, confidence) => sum + confidence, 0) / sure.length
  expect(Math.abs(meanSure - accuracyOf(artefact, rows))).toBeLessThan(0.06)
})

test("rows without vectors are calibrated", async () => {
  const rows = makeRows({ ...choice, kind: "predicate", optionCount: 2, rows: 300, marginSignal: 0.3 }).map(
    (row) => ({
      ...row,
      vector: null,
      margins: Array.from(row.margins, (margin) => 9 * margin),
    }),
  )
  const artefact = await teach(questionOf("predicate", 2), rows, options)
  expect(loadArtefact(artefact).needsVector).toBe(false)
  const { before, after } = artefact.crossValidated
  expect(after.calibrationError.value).toBeLessThan(before.calibrationError.value / 2)
})

test("the same rows in another order give the same artefact, byte for byte", async () => {
  const rows = makeRows({ ...choice, rows: 60 })
  const first = await teach(questionOf("choice", 4), rows, options)
  const second = await teach(questionOf("choice", 4), rows.toReversed(), options)
  expect(JSON.stringify(second)).toBe(JSON.stringify(first))
})

test("an artefact that went through JSON gives the held-out answers that it tells of", async () => {
  const rows = makeRows(choice)
  const artefact = await teach(questionOf("choice", 4), rows, options)
  // What was stored as JSON is read back as it was.
  const stored = JSON.parse(JSON.stringify(artefact)) as TaughtArtefact
  const taught = loadArtefact(stored)
  const confidences = rows
    .filter(({ split }) => split === "held_out")
    .map(({ margins, text, vector }) =>
      answerConfidence("choice", taught.apply(margins, { features: featuresLater(text), vector })),
    )
    .toSorted((a, b) => b - a)
  expect(confidences.length).toBe(artefact.rows.heldOut)
  for (const [at, { confidence }] of artefact.heldOutAnswers.entries())
    expect(confidences[at]).toBeCloseTo(confidence, 5)
})

test("held-out rows change no number that is fitted", async () => {
  const rows = makeRows({ ...choice, rows: 60 })
  const flipped = rows.map((row) => (row.split === "train" ? row : { ...row, label: (row.label + 1) % 4 }))
  const [first, second] = await Promise.all(
    [rows, flipped].map(async (given) => await teach(questionOf("choice", 4), given, options)),
  )
  expect(second?.parameters).toEqual(first?.parameters)
  expect(second?.heldOut).not.toEqual(first?.heldOut)
  expect(second?.examplesHash).not.toBe(first?.examplesHash)
})

/** Rows that a teacher has labelled, wrong in so many of a hundred. */
const taughtRows = (rows: readonly TaughtRow[], wrongOf100: number, optionCount: number): TaughtRow[] =>
  rows.map((row, at) => ({
    ...row,
    split: "train",
    isTeacher: true,
    label: (row.label + ((at * 37) % 100 < wrongOf100 ? 1 : 0)) % optionCount,
  }))

const hard = { ...choice, marginSignal: 0.3, vectorSignal: 0.25 } as const
const people = makeRows({ ...hard, rows: 40 }).map((row) => ({ ...row, split: "train" as const }))
const unlabelled = makeRows({ ...hard, rows: 400, seed: 21 })
const untouched = makeRows({ ...hard, rows: 500, seed: 22 })

const figuresBefore = ({ crossValidated: { before } }: TaughtArtefact) => [
  before.rows,
  before.accuracy,
  before.brier,
]

test("answers of a good teacher are learnt from beside people's labels, and judge nothing", async () => {
  const alone = await teach(questionOf("choice", 4), people, options)
  const both = await teach(questionOf("choice", 4), [...people, ...taughtRows(unlabelled, 10, 4)], options)
  expect(alone.teacher).toBeUndefined()
  expect(both.teacher?.rows).toBe(400)
  expect(both.teacher?.weight).toBeGreaterThan(0.1)
  expect(accuracyOf(both, untouched)).toBeGreaterThan(accuracyOf(alone, untouched) + 0.02)
  expect(both.rows).toEqual(alone.rows)
  expect(figuresBefore(both)).toEqual(figuresBefore(alone))
  expect(both.heldOutAnswers).toHaveLength(40)
  expect(both.learning?.at(-1)?.rows).toBe(40)
})

test("a teacher that knows nothing is not believed", async () => {
  const random = seededRandom(5)
  const blind = unlabelled.map((row): TaughtRow => ({
    ...row,
    split: "train",
    isTeacher: true,
    label: Math.floor(random() * 4),
  }))
  const alone = await teach(questionOf("choice", 4), people, options)
  const both = await teach(questionOf("choice", 4), [...people, ...blind], options)
  expect(both.teacher?.weight).toBeLessThan(0.01)
  // Its texts alone are learnt from: which words are rare.
  expect(accuracyOf(both, untouched)).toBeGreaterThan(accuracyOf(alone, untouched) - 0.06)
})

test("a teacher's answers alone teach nothing", async () => {
  const work = teach(questionOf("choice", 4), taughtRows(unlabelled, 0, 4), options)
  await expect(work).rejects.toThrow(TeachRefusal)
})

test("progress rises to one", async () => {
  const told: number[] = []
  await teach(questionOf("choice", 4), makeRows({ ...choice, rows: 30 }), {
    ...options,
    onProgress: (done) => told.push(done),
  })
  expect(told).toEqual(told.toSorted((a, b) => a - b))
  expect(told.at(-1)).toBe(1)
})

test("a signal ends it with its reason", async () => {
  const controller = new AbortController()
  const reason = new Error("cancelled")
  const work = teach(questionOf("choice", 4), makeRows(choice), {
    ...options,
    signal: controller.signal,
    onProgress: () => controller.abort(reason),
  })
  await expect(work).rejects.toBe(reason)
})

test("baselines tell a question that is answered without its text", async () => {
  const question = { ...questionOf("choice", 4), emptyMargins: [3, 0, 0, 0] }
  const blind = makeRows({ ...choice, marginSignal: 0, vectorSignal: 0, rows: 80 })
  const { baselines } = await teach(question, blind, options)
  expect(baselines.random).toBe(0.25)
  expect(baselines.emptyEvidence).toBe(blind.filter(({ label }) => label === 0).length / 80)
  expect(baselines.answeredWithoutEvidence).toBe(true)
  expect((await teach(question, makeRows(choice), options)).baselines.answeredWithoutEvidence).toBe(false)
})

test("options without an example are named", async () => {
  const rows = makeRows({ ...choice, rows: 40 }).filter(({ label }) => label < 3)
  const { notes } = await teach(questionOf("choice", 4), rows, options)
  expect(notes).toContain(
    "1 of 4 options have no training row; they keep the odds that the model gives them: option 3",
  )
})

test.each([
  ["no training rows", (rows: TaughtRow[]) => rows.map((row) => ({ ...row, split: "held_out" as const }))],
  ["a label that is no option", (rows: TaughtRow[]) => rows.map((row) => ({ ...row, label: 4 }))],
  [
    "a margin that is not finite",
    (rows: TaughtRow[]) => rows.map((row) => ({ ...row, margins: [0, 0, 0, Number.NaN] })),
  ],
  ["a margin too few", (rows: TaughtRow[]) => rows.map((row) => ({ ...row, margins: [0, 0, 0] }))],
  [
    "a vector of another length",
    (rows: TaughtRow[]) => [...rows.slice(1), { ...rows[0], vector: new Float32Array(2) } as TaughtRow],
  ],
])("%s is refused", async (_, change) => {
  const work = teach(questionOf("choice", 4), change(makeRows({ ...choice, rows: 20 })), options)
  await expect(work).rejects.toThrow(TeachRefusal)
})

test("about a third of texts is held out, for good", () => {
  const splits = Array.from({ length: 3000 }, (_, index) => splitOf(rowHash(`text ${index}`)))
  const share = splits.filter((split) => split === "held_out").length / splits.length
  expect(share).toBeGreaterThan(0.3)
  expect(share).toBeLessThan(0.37)
  expect(rowHash(" text ")).toBe(rowHash("text"))
})
