/** Alert rules from the API to the receiver: each kind fires and resolves, once for each change of its state. */
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest"
import { dayOf, systemClock } from "../src/base/clock.ts"
import { silentLog } from "../src/base/log.ts"
import { fromCents, ticksPerCent } from "../src/base/money.ts"
import { alertKindSettings, alertKinds } from "../src/contract/alerts/rules.ts"
import { alertLimits } from "../src/contract/alerts/webhooks.ts"
import { type EvaluationDeps, evaluateRules } from "../src/control/alerts/evaluate.ts"
import type { AlertFacts } from "../src/control/alerts/measure.ts"
import { startDeliverer } from "../src/control/webhooks/deliverer.ts"
import { createWebhookSender } from "../src/control/webhooks/send.ts"
import { addAnswerCounts, languageQuestion } from "../src/store/question-sets/answer-counts.ts"
import { enterKeySpend, tagBudgetId } from "../src/store/budgets.ts"
import { putWorkerViews } from "../src/store/alerts/rules.ts"
import { cipher } from "./kept-content.ts"
import { openTestDatabase } from "./database.ts"
import { type Platform, seeder, startPlatform } from "./platform.ts"

const hourMs = 3_600_000
const dayMs = 24 * hourMs

let platform: Platform
/** Of the installation's first organization, the operator's. */
let first: Scene
let scene: Scene
let nowMs: number
let facts: AlertFacts
let announced: number

interface Scene {
  readonly org: string
  readonly account: string
  readonly bearer: string
}

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase(), {
    deps: { email: { enabled: true, recipients: "members" } },
  })
  first = await organization("operator")
})

afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

beforeEach(async () => {
  scene = await organization(`org-${platform.ids.next("req")}`)
  nowMs = Date.now()
  announced = 0
  facts = { requests: null }
})

async function organization(name: string): Promise<Scene> {
  const seed = seeder(platform)
  const account = await seed.billingAccount()
  const org = await seed.organization(name, account)
  const owner = await seed.user(`${name}@alerts.test`)
  await seed.member(org, owner, "primary_owner")
  return { org, account, bearer: await seed.session(owner) }
}

async function evaluate(): Promise<void> {
  const deps: EvaluationDeps = {
    publicUrl: () => "https://umpire.test",
    database: platform.database,
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
    ids: platform.ids,
    log: silentLog,
    facts,
    invalidate: () => void announced++,
  }
  await evaluateRules(deps)
}

const call = async (method: string, path: string, body?: unknown, { org, bearer } = scene) =>
  await platform.send(method, `/v1/organizations/${org}${path}`, {
    bearer,
    ...(body === undefined ? {} : { body }),
  })

async function rule(given: Record<string, unknown>, who = scene): Promise<string> {
  const made = await call("POST", "/alert_rules", { name: "Rule", ...given }, who)
  expect(made.status, JSON.stringify(made.body)).toBe(200)
  return made.body.data.id
}

/** The state of the rule, and the states of the alerts that it raised, oldest first. */
async function statesOf(id: string, who = scene): Promise<[string, string[]]> {
  const { data } = (await call("GET", `/alert_rules/${id}`, undefined, who)).body
  const alerts = (await call("GET", `/alerts?rule_id=${id}`, undefined, who)).body.data
  return [data.state, alerts.map(({ state }: { state: string }) => state).toReversed()]
}

/** Evaluates after each of the steps, twice, and expects the states; the second evaluation must change nothing. */
async function expectStates(id: string, steps: readonly [() => unknown, string, string[]][], who = scene) {
  for (const [step, state, alerts] of steps) {
    await step()
    await evaluate()
    await evaluate()
    expect(await statesOf(id, who)).toEqual([state, alerts])
  }
}

const setBalance =
  (cents: bigint, mode = "prepaid") =>
  async () =>
    await platform.database.query("UPDATE billing_accounts SET balance_ticks = $2, mode = $3 WHERE id = $1", [
      scene.account,
      cents * ticksPerCent,
      mode,
    ])

test("a balance below the threshold fires, a balance at it does not, a postpaid account has none", async () => {
  const id = await rule({ kind: "balance_below", threshold: 500 })
  await expectStates(id, [
    [setBalance(500n), "ok", []],
    [setBalance(499n), "firing", ["firing"]],
    // Unknown now: what fires goes on until it is known that it does not.
    [setBalance(499n, "postpaid"), "firing", ["firing"]],
    [setBalance(501n), "ok", ["firing", "resolved"]],
    [setBalance(0n), "firing", ["firing", "resolved", "firing"]],
  ])
})

test("the month's spend fires at the threshold, and resolves with the next month", async () => {
  const id = await rule({ kind: "spend_above", threshold: 100 })
  const month = `${new Date(nowMs).toISOString().slice(0, 7)}-01`
  const spend = (cents: bigint) => async () =>
    await platform.database.query(
      `INSERT INTO month_spend (billing_account_id, month, spent_ticks) VALUES ($1, $2, $3)
       ON CONFLICT (billing_account_id, month) DO UPDATE SET spent_ticks = excluded.spent_ticks`,
      [scene.account, month, cents * ticksPerCent],
    )
  await expectStates(id, [
    [spend(99n), "ok", []],
    [spend(100n), "firing", ["firing"]],
    [() => (nowMs += 32 * dayMs), "ok", ["firing", "resolved"]],
  ])
})

const purchase = (status: string) => async () =>
  await platform.database.query(
    `INSERT INTO purchases (id, billing_account_id, purpose, amount_cents, status, provider_key, created_at, updated_at)
     VALUES ($1, $2, 'auto_refill', 1000, $3, $1, now(), now())`,
    [platform.ids.next("cp"), scene.account, status],
  )

test("a purchase of credit that failed fires until one succeeds", async () => {
  const id = await rule({ kind: "refill_failed" })
  await expectStates(id, [
    [() => undefined, "ok", []],
    [purchase("failed"), "firing", ["firing"]],
    [purchase("processing"), "ok", ["firing", "resolved"]],
    [purchase("action_required"), "firing", ["firing", "resolved", "firing"]],
    [purchase("succeeded"), "ok", ["firing", "resolved", "firing", "resolved"]],
  ])
})

const requests =
  (count: number, errors: number, p95LatencyMs = 0) =>
  () => {
    facts = { ...facts, requests: async () => ({ requests: count, errors, p95LatencyMs }) }
  }

test("an error rate above the threshold fires; too few requests, or no analytics, do not", async () => {
  const id = await rule({ kind: "error_rate", threshold: 0.1 })
  await expectStates(id, [
    [() => undefined, "unknown", []],
    [requests(9, 9), "ok", []],
    [requests(10, 1), "ok", []],
    [requests(100, 11), "firing", ["firing"]],
    [requests(0, 0), "ok", ["firing", "resolved"]],
  ])
})

test("a latency above the threshold fires, of the window, key and model that the rule names", async () => {
  const { id: key } = await seeder(platform).key(scene.org, ["inference"])
  const target = { api_key_id: key, model: "open" }
  const id = await rule({ kind: "latency", threshold: 200, window_minutes: 30, target })
  const asked: unknown[] = []
  facts = {
    ...facts,
    requests: async (selection) => {
      asked.push(selection)
      return { requests: 10, errors: 0, p95LatencyMs: 201 }
    },
  }
  await evaluate()
  expect(await statesOf(id)).toEqual(["firing", ["firing"]])
  expect(asked).toContainEqual({
    organizationId: scene.org,
    startMs: nowMs - 30 * 60_000,
    endMs: nowMs + 1,
    filters: [
      { dimension: "api_key_id", value: key, excluded: false },
      { dimension: "model", value: "open", excluded: false },
    ],
  })
  await expectStates(id, [[requests(10, 0, 200), "ok", ["firing", "resolved"]]])
})

async function questionSet(name = "answers"): Promise<string> {
  const rude = { type: "predicate", name: "rude", instructions: "Is it rude?" }
  const made = await call("POST", "/question_sets", { name, model: "open", questions: [rude] })
  return made.body.data.id
}

const answered = (setId: string, hoursAgo: number, yes: number, no: number, bin = 9) =>
  counted({ setId, question: "rude", hoursAgo, bin }, { yes, no })

interface Counted {
  readonly setId: string
  readonly question: string
  readonly hoursAgo: number
  readonly bin: number
}

const counted =
  ({ setId, question, hoursAgo, bin }: Counted, counts: Readonly<Record<string, number>>) =>
  async () => {
    await addAnswerCounts(
      platform.database,
      Object.entries(counts).map(([answer, rows]) => ({
        setId,
        version: 1,
        question,
        hourMs: Math.floor(nowMs / hourMs) * hourMs - hoursAgo * hourMs,
        abstained: false,
        answer,
        rows,
        bins: Array.from({ length: 10 }, (_, at) => (at === bin ? rows : 0)),
        confidence: rows * (bin / 10 + 0.05),
        latencyMs: 0,
        costTicks: 0n,
      })),
    )
  }

test("answers that are distributed unlike before fire, and are told with their figures", async () => {
  const setId = await questionSet()
  const id = await rule({ kind: "drift", window_minutes: 60, target: { question_set_id: "answers" } })
  await expectStates(id, [
    [answered(setId, 4, 500, 500), "unknown", []],
    [answered(setId, 0, 50, 49), "unknown", []],
    [answered(setId, 0, 0, 1), "ok", []],
    [answered(setId, 0, 900, 0), "firing", ["firing"]],
    [() => (nowMs += 30 * dayMs), "firing", ["firing"]],
  ])
  const { data } = (await call("GET", `/alerts?rule_id=${id}`)).body
  expect(data[0].detail).toMatch(/^Answers of rude: PSI \d\.\d+, p .+, 1,000 answers against 1,000\.$/)
  const monitoring = await call("GET", `/question_sets/answers/monitoring?bucket=hour`)
  expect(monitoring.status).toBe(200)
})

test("texts in other languages than before fire, unless the rule names a question", async () => {
  const setId = await questionSet("texts")
  const about = { kind: "drift", window_minutes: 60 }
  const id = await rule({ ...about, target: { question_set_id: "texts" } })
  const narrow = await rule({ ...about, target: { question_set_id: "texts", question: "rude" } })
  const texts = (hoursAgo: number, counts: Readonly<Record<string, number>>) =>
    counted({ setId, question: languageQuestion, hoursAgo, bin: 0 }, counts)
  await expectStates(id, [
    [texts(4, { en: 480, unknown: 20 }), "unknown", []],
    [texts(0, { en: 190, unknown: 10 }), "ok", []],
    [texts(0, { de: 200 }), "firing", ["firing"]],
  ])
  const { data } = (await call("GET", `/alerts?rule_id=${id}`)).body
  expect(data[0].detail).toMatch(/^Languages of texts: PSI \d\.\d+, p .+, 400 texts against 500\.$/)
  await expectStates(narrow, [[() => undefined, "unknown", []]])
})

test("answers of low confidence fire, of the question that the rule names", async () => {
  const setId = await questionSet()
  const target = { question_set_id: setId, question: "rude" }
  const id = await rule({ kind: "low_confidence", threshold: 0.7, window_minutes: 60, target })
  await expectStates(id, [
    [answered(setId, 0, 29, 0, 5), "unknown", []],
    [answered(setId, 0, 1, 0, 5), "firing", ["firing"]],
    [answered(setId, 0, 300, 0, 9), "ok", ["firing", "resolved"]],
  ])
})

test("a key fires in the last days before it expires, and not when it is gone", async () => {
  const id = await rule({ kind: "key_expiring", threshold: 7 })
  const expiresAt = new Date(nowMs + 8 * dayMs)
  await seeder(platform).key(scene.org, ["inference"], null, { expiresAt })
  await expectStates(id, [
    [() => undefined, "ok", []],
    [() => (nowMs += dayMs), "firing", ["firing"]],
    [() => (nowMs += 7 * dayMs), "ok", ["firing", "resolved"]],
  ])
})

test("a key that spent what its budget warns of fires, tells when it is refused, and resolves with the next day", async () => {
  const id = await rule({ kind: "key_budget" })
  const budgets = [{ period: "day", cutoff_threshold_cents: 100, warning_threshold_cents: 80 }]
  const body = { name: "spender", permissions: ["inference"], scope: "organization", budgets }
  const keyId: string = (await call("POST", "/api_keys", body)).body.data.id
  const spend = (cents: number) => async () =>
    await enterKeySpend(platform.database, [{ keyId, day: dayOf(nowMs), ticks: fromCents(cents) }])
  const detail = async (): Promise<string> =>
    (await call("GET", `/alerts?rule_id=${id}`)).body.data[0].detail as string
  await expectStates(id, [
    [spend(79), "ok", []],
    [spend(1), "firing", ["firing"]],
  ])
  expect(await detail()).toBe(`spender (${keyId}) spent $0.80 this day.`)
  await expectStates(id, [
    [spend(20), "firing", ["firing"]],
    [() => (nowMs += dayMs), "ok", ["firing", "resolved"]],
    [spend(100), "firing", ["firing", "resolved", "firing"]],
  ])
  expect(await detail()).toBe(`spender (${keyId}) spent $1.00 this day and is refused.`)
  await call("DELETE", `/api_keys/${keyId}`)
  const tag = { key: "team", value: "ops" }
  await call("PUT", "/tag_budgets", { ...tag, budgets: [{ period: "day", warning_threshold_cents: 5 }] })
  const tagId = tagBudgetId({ organizationId: scene.org, tagKey: tag.key, tagValue: tag.value })
  const ofTag = { keyId: tagId, day: dayOf(nowMs), ticks: fromCents(5) }
  const raised = ["firing", "resolved", "firing"]
  await expectStates(id, [
    [() => undefined, "ok", [...raised, "resolved"]],
    [
      async () => await enterKeySpend(platform.database, [ofTag]),
      "firing",
      [...raised, "resolved", "firing"],
    ],
  ])
  expect(await detail()).toBe("The tag team=ops spent $0.05 this day.")
})

const sees = (gatewayId: string, isUp: boolean) => async () =>
  await putWorkerViews(platform.database, gatewayId, [{ model: "open", id: "gpu-1", isUp }], new Date(nowMs))

test("a worker that any gateway sees down fires, for the operator's organization only", async () => {
  const refused = await call("POST", "/alert_rules", { name: "Workers", kind: "worker_down" })
  expect(refused.status).toBe(403)
  const id = await rule({ kind: "worker_down" }, first)
  await expectStates(
    id,
    [
      [sees("gw_1", true), "ok", []],
      [sees("gw_2", false), "firing", ["firing"]],
      [sees("gw_1", true), "firing", ["firing"]],
      [sees("gw_2", true), "ok", ["firing", "resolved"]],
      [sees("gw_2", false), "firing", ["firing", "resolved", "firing"]],
      // A gateway that is silent for longer than a minute is not running.
      [() => (nowMs += 61_000), "ok", ["firing", "resolved", "firing", "resolved"]],
    ],
    first,
  )
  await call("DELETE", `/alert_rules/${id}`, undefined, first)
  const kinds = async (who: Scene): Promise<string[]> =>
    (await call("GET", "/alert_options", undefined, who)).body.data.kinds.map(
      ({ kind }: { kind: string }) => kind,
    )
  expect(await kinds(first)).toEqual([...alertKinds])
  expect(await kinds(scene)).toEqual(alertKinds.filter((kind) => kind !== "worker_down"))
})

test("a change goes to the rule's channels, as one event, and into the audit log; a disabled rule is silent", async () => {
  const url = "https://receiver.example/"
  const all = (await call("POST", "/webhooks", { url })).body.data.id
  const resolvedOnly = (await call("POST", "/webhooks", { url, events: ["alert.resolved"] })).body.data.id
  const user = await seeder(platform).user(`${scene.org}-grace@alerts.test`)
  await seeder(platform).member(scene.org, user, "member")
  const address = `${scene.org}-grace@alerts.test`
  const id = await rule({
    kind: "balance_below",
    threshold: 500,
    channels: [
      { type: "webhook", webhook_id: all },
      { type: "webhook", webhook_id: resolvedOnly },
      { type: "email", address },
    ],
  })
  await setBalance(1n)()
  await evaluate()
  const [alert] = (await call("GET", "/alerts")).body.data
  expect(
    alert.deliveries.map(({ channel, target, state }: Record<string, string>) => [channel, target, state]),
  ).toEqual([
    ["webhook", all, "pending"],
    ["email", address, "pending"],
  ])
  expect(announced).toBe(2)
  const [delivery] = (await call("GET", `/webhooks/${all}/deliveries`)).body.data
  const { body } = (await call("GET", `/webhooks/${all}/deliveries/${delivery.id}`)).body.data
  expect(JSON.parse(body)).toEqual({
    id: alert.id,
    type: "alert.firing",
    created: alert.at,
    organization_id: scene.org,
    data: {
      rule_id: id,
      rule_name: "Rule",
      kind: "balance_below",
      state: "firing",
      value: 1,
      threshold: 500,
      window_minutes: null,
      target: {},
      detail: "The balance is $0.01; the threshold is $5.00.",
    },
  })
  const audit = (await call("GET", "/audit_log?limit=5")).body.data
  expect(audit.map(({ action }: { action: string }) => action)).toContain("alert.firing")
  await call("PATCH", `/alert_rules/${id}`, { enabled: false })
  await setBalance(1000n)()
  await evaluate()
  expect(await statesOf(id)).toEqual(["unknown", ["firing"]])
  // A webhook that is deleted is named by no rule.
  await call("DELETE", `/webhooks/${all}`)
  const { data } = (await call("GET", `/alert_rules/${id}`)).body
  expect(data.channels.map(({ webhook_id }: { webhook_id?: string }) => webhook_id)).toEqual([
    resolvedOnly,
    undefined,
  ])
})

test("a member who has left gets no e-mail, although a rule still names the address", async () => {
  const seed = seeder(platform)
  const [stays, leaves] = [`${scene.org}-stays@alerts.test`, `${scene.org}-leaves@alerts.test`]
  await seed.member(scene.org, await seed.user(stays), "member")
  const left = await seed.user(leaves)
  await seed.member(scene.org, left, "member")
  const channels = [leaves, stays].map((address) => ({ type: "email", address }))
  await rule({ kind: "balance_below", threshold: 500, channels })
  await setBalance(1n)()
  await evaluate()
  await platform.database.query("DELETE FROM memberships WHERE user_id = $1", [left])
  const sent: string[] = []
  const webhooks = createWebhookSender({ allowPrivate: false })
  const deliverer = await startDeliverer({
    cipher,
    database: platform.database,
    clock: systemClock,
    ids: platform.ids,
    log: silentLog,
    webhooks,
    mail: {
      send: async ({ address }) => {
        sent.push(address)
        return { status: null, error: null }
      },
    },
    recipients: "members",
  })
  await vi.waitFor(
    async () => {
      const [alert] = (await call("GET", "/alerts")).body.data
      const states = alert.deliveries.map(({ target, state }: Record<string, string>) => [target, state])
      expect(states).toEqual([
        [leaves, "failed"],
        [stays, "succeeded"],
      ])
    },
    { timeout: 60_000, interval: 20 },
  )
  await deliverer.close()
  await webhooks.close()
  expect(sent.filter((address) => address.startsWith(scene.org))).toEqual([stays])
})

test("two gateways that evaluate at once raise one alert", async () => {
  const id = await rule({ kind: "balance_below", threshold: 500 })
  await setBalance(1n)()
  await Promise.all([evaluate(), evaluate(), evaluate()])
  expect(await statesOf(id)).toEqual(["firing", ["firing"]])
})

test("each kind's bounds hold: the least and the greatest are accepted, what is beyond them is not", async () => {
  const setId = await questionSet()
  for (const kind of alertKinds) {
    const { threshold, windowMinutes, required, operatorOnly } = alertKindSettings[kind]
    if (operatorOnly) continue
    const target = required.includes("question_set_id") ? { question_set_id: setId } : {}
    const status = async (given: Record<string, unknown>): Promise<number> =>
      (await call("POST", "/alert_rules", { name: kind, kind, target, ...given })).status
    for (const [field, bounds] of [
      ["threshold", threshold],
      ["window_minutes", windowMinutes],
    ] as const) {
      if (bounds === null) {
        expect(await status({ [field]: 1 }), `${kind} ${field}`).toBe(422)
        continue
      }
      for (const [value, expected] of [
        [bounds.min, 200],
        [bounds.max, 200],
        [bounds.min - 1, 422],
        [bounds.max + 1, 422],
      ] as const)
        expect(await status({ [field]: value }), `${kind} ${field} ${value}`).toBe(expected)
    }
  }
})

test.each([
  [
    "a target that the kind does not have",
    { kind: "latency", target: { question: "rude" } },
    "target.question",
  ],
  ["no set", { kind: "drift" }, "target.question_set_id"],
  [
    "a set that is not there",
    { kind: "drift", target: { question_set_id: "none" } },
    "target.question_set_id",
  ],
  [
    "a key that is not there",
    { kind: "key_expiring", target: { api_key_id: "key_none" } },
    "target.api_key_id",
  ],
  ["parts of cents", { kind: "balance_below", threshold: 1.5 }, "threshold"],
  ["a webhook that is not there", { channels: [{ type: "webhook", webhook_id: "wh_none" }] }, "channels"],
  ["someone who is no member", { channels: [{ type: "email", address: "eve@example.com" }] }, "channels"],
])("a rule with %s is refused", async (_, given, path) => {
  const answer = await call("POST", "/alert_rules", { name: "Rule", kind: "error_rate", ...given })
  expect(answer.status).toBe(422)
  expect(answer.body.error.details[0].path).toBe(path)
})

test("an organization has as many rules as the limit says, and not one more", async () => {
  for (let at = 0; at < alertLimits.rulesMax; at++) await rule({ kind: "error_rate", enabled: false })
  expect((await call("POST", "/alert_rules", { name: "Rule", kind: "error_rate" })).status).toBe(409)
})
