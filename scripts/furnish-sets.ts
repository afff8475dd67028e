/** Question sets that are taught, published, shadowed and reviewed, with alerts beside them, for pictures of the console. */
import type { Client } from "../src/contract/client.ts"
import { addAnswerCounts, confidenceBins } from "../src/store/question-sets/answer-counts.ts"
import type { Database } from "../src/store/sql.ts"
import type { TestServer } from "../test/server.ts"

const hourMs = 3_600_000
const pollMs = 250
const examplesCount = 90

export interface Triage {
  readonly id: string
  readonly name: string
  readonly version: number
}

const levels = [{ label: "calm" }, { label: "annoyed" }, { label: "furious" }]
const questions = [
  { type: "predicate" as const, name: "wants_refund", instructions: "Does the customer ask for a refund?" },
  {
    type: "choice" as const,
    name: "topic",
    instructions: "What is the letter mainly about?",
    choices: [
      { value: "delivery", description: "late, lost or damaged parcels" },
      { value: "billing", description: "charges, invoices and refunds" },
      { value: "account", description: "passwords and signing in" },
    ],
  },
  { type: "score" as const, name: "anger", instructions: "How angry is the customer?", levels },
]

/** Texts with their labels; the number makes each one differ. */
const letters = [
  (n: number) =>
    [
      `Order ${4000 + n} came ${2 + (n % 9)} days late and the box was crushed. I want my money back.`,
      { wants_refund: true, topic: "delivery", anger: 1 },
    ] as const,
  (n: number) =>
    [
      `You charged my card twice for invoice ${700 + n}. Please refund the second payment today.`,
      { wants_refund: true, topic: "billing", anger: 1 },
    ] as const,
  (n: number) =>
    [
      `I cannot sign in since ${1 + (n % 12)} o'clock; the link to reset my password does not arrive.`,
      { wants_refund: false, topic: "account", anger: 0 },
    ] as const,
  (n: number) =>
    [
      `This is the ${n}th time that I write! Where is my tent? Nobody answers, this is outrageous!`,
      { wants_refund: false, topic: "delivery", anger: 2 },
    ] as const,
  (n: number) =>
    [
      `Thank you, the invoice over ${20 + n} dollars is right. Could you send it as a PDF as well?`,
      { wants_refund: false, topic: "billing", anger: 0 },
    ] as const,
] as const

const letter = (n: number) => {
  const [input, labels] = (letters[n % letters.length] ?? letters[0])(n)
  return { input, labels }
}

/** Two sets: one in daily use, one just begun and with long names. */
export async function furnishSets(server: TestServer, api: Client, org_id: string): Promise<Triage> {
  const params = { org_id }
  const model = "umpire-decide"
  await api.createQuestionSet({
    params,
    body: {
      name: "product-reviews-of-the-german-and-austrian-shops",
      description:
        "Whether a review names a fault of the product, and which; used by the buyers every Monday, and by the shop to choose which reviews to show first.",
      model,
      questions: [
        {
          type: "choice",
          name: "fault_that_the_review_mentions_first",
          instructions:
            "Which fault of the product does the review mention first, if it mentions any at all?",
          choices: ["stitching", "zip", "waterproofness", "none"].map((value) => ({ value })),
        },
      ],
    },
  })
  const made = await api.createQuestionSet({
    params,
    body: {
      name: "ticket-triage",
      description: "Letters to support, sorted for the teams.",
      model,
      questions,
    },
  })
  const at = { org_id, set_id: made.id }
  await api.addQuestionSetExamples({
    params: at,
    body: { rows: Array.from({ length: examplesCount }, (_, n) => letter(n)) },
  })
  await api.addQuestionSetCases({
    params: at,
    body: {
      cases: [0, 1, 2, 3, 4]
        .map((n) => letter(500 + n))
        .map(({ input, labels }) => ({ input, expected: labels })),
    },
  })
  await finished(api, at, (await api.teachQuestionSet({ params: at, body: { target_accuracy: 0.9 } })).id)
  const taught = await api.getQuestionSet({ params: at })
  const version = taught.latest_version
  await api.putQuestionSetLabel({ params: { ...at, label: "production" }, body: { version } })
  await api.putQuestionSetLabel({ params: { ...at, label: "before-the-winter-sale" }, body: { version: 1 } })
  const stricter = taught.questions.map((one) => (one.name === "topic" ? { ...one, threshold: 0.8 } : one))
  await api.updateQuestionSet({
    params: at,
    body: {
      questions: stricter,
      note: "Fewer letters in the wrong team’s queue",
      shadow: { version: 1, model: null, share: 1 },
    },
  })
  await finished(api, at, (await api.checkQuestionSet({ params: at, body: { against: "1" } })).id)
  await finished(
    api,
    at,
    (await api.runQuestionSetComparison({ params: at, body: { from: "1", to: "latest" } })).id,
  )
  await keepAndAsk(server, api, at)
  return { id: made.id, name: made.name, version }
}

/** Kept evidence fills the queue of review; a reviewer has decided some of it. */
async function keepAndAsk(
  server: TestServer,
  api: Client,
  at: { org_id: string; set_id: string },
): Promise<void> {
  await api.putContentSettings({
    params: { org_id: at.org_id },
    body: {
      keep: "evidence_and_answers",
      retention_days: 30,
      sample_rate: 1,
      redact: {
        patterns: [{ name: "email", pattern: String.raw`[\w.+-]+@[\w-]+\.[\w.-]*\w` }],
        question_set: null,
      },
    },
  })
  await api.updateReviewSettings({ params: at, body: { sample_rate: 0.2 } })
  for (let n = 0; n < 24; n++)
    await server.post(
      "/v1/decisions",
      { model: "set:ticket-triage", input: `${letter(900 + n).input} Yours, jo@example.com`, questions: [] },
      { "x-umpire-tags": `team=support,mailbox=${n % 2 === 0 ? "orders" : "returns"}` },
    )
  const open = await waitFor(async () => {
    const { data } = await api.listReviewItems({ params: at, query: { limit: 20 } })
    return data.length > 3 ? data : null
  })
  for (const { id, question } of open.slice(0, 3))
    await api.decideReviewItem({
      params: { ...at, item_id: id },
      body: question === "wants_refund" ? { label: true } : { decision: "not_sure" },
    })
}

/** Rules of most kinds, and a receiver that answers beside one that cannot be reached. */
export async function furnishAlerts(
  api: Client,
  org_id: string,
  given: { readonly receiver: string; readonly set: Triage },
): Promise<void> {
  const params = { org_id }
  const { id: webhook_id } = await api.createWebhook({
    params,
    body: { url: `${given.receiver}/umpire`, description: "On-call rotation" },
  })
  const unreachable = await api.createWebhook({
    params,
    body: { url: "https://hooks.acme.example/services/umpire/alerts/production", description: "" },
  })
  await api.testWebhook({ params: { org_id, webhook_id } })
  await api.testWebhook({ params: { org_id, webhook_id: unreachable.id } })
  const channels = [{ type: "webhook" as const, webhook_id }]
  for (const [name, kind, more] of [
    ["Errors of the ticket triage", "error_rate", {}],
    ["Slow answers", "latency", { threshold: 400, window_minutes: 60 }],
    ["Credit", "balance_below", { threshold: 5_000_000 }],
    ["Topics drift", "drift", { target: { question_set_id: given.set.id, question: "topic" } }],
    ["Keys that expire", "key_expiring", { threshold: 14, enabled: false }],
  ] as const)
    await api.createAlertRule({ params, body: { name, kind, channels, ...more } })
}

/** Counts of answers over eight weeks, whose topics shift in the last one. The server must not run. */
export async function countAnswers(database: Database, set: Triage, nowMs: number): Promise<void> {
  const counts = []
  for (let hour = 56 * 24; hour >= 1; hour--) {
    const at = Math.floor((nowMs - hour * hourMs) / hourMs) * hourMs
    const busy = new Date(at).getUTCHours() > 6 && new Date(at).getUTCHours() < 20 ? 9 : 2
    const late = hour < 7 * 24
    const shares = {
      wants_refund: { yes: 0.4, no: 0.6 },
      topic: late
        ? { delivery: 0.7, billing: 0.2, account: 0.1 }
        : { delivery: 0.4, billing: 0.35, account: 0.25 },
      anger: { 0: 0.5, 1: 0.3, 2: 0.2 },
    }
    for (const [question, answers] of Object.entries(shares))
      for (const [answer, share] of [...Object.entries(answers), ["", late ? 0.12 : 0.05] as const]) {
        const rows = Math.round(busy * share * (1 + 0.4 * Math.sin(hour / 5)))
        if (rows === 0) continue
        const peak = answer === "" ? 5 : 9
        counts.push({
          setId: set.id,
          version: late ? set.version : 1,
          question,
          hourMs: at,
          abstained: answer === "",
          answer,
          rows,
          bins: Array.from({ length: confidenceBins }, (_, bin) => (bin === peak ? rows : 0)),
          confidence: rows * (peak / 10 + 0.05),
          latencyMs: rows * (40 + (hour % 17)),
          costTicks: BigInt(rows) * 84_000_000n,
        })
      }
  }
  await addAnswerCounts(database, counts)
}

async function finished(api: Client, at: { org_id: string; set_id: string }, job_id: string): Promise<void> {
  await waitFor(async () => {
    const { state } = await api.getQuestionSetJob({ params: { ...at, job_id } })
    if (state === "failed") throw new Error(`Cannot furnish: the job ${job_id} failed`)
    return state === "succeeded" ? state : null
  })
}

async function waitFor<T>(look: () => Promise<T | null>): Promise<T> {
  for (;;) {
    const found = await look()
    if (found !== null) return found
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}
