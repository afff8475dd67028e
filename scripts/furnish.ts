/** A month in the life of a small company: people, keys, providers, money and some ten thousand requests, for pictures of the console. */
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { openPglite } from "../src/store/pglite.ts"
import type { SequenceRecord } from "../src/store/journal/record.ts"
import { digestRecords } from "../src/store/journal/digest.ts"
import { applyUsage } from "../src/store/usage.ts"
import { operatorOf } from "../test/operator.ts"
import { type Client, createClient } from "../src/contract/client.ts"
import { ownerOf } from "../test/console.ts"
import { type Triage, countAnswers, furnishAlerts, furnishSets } from "./furnish-sets.ts"
import { sequenceRecord } from "../test/sequence-record.ts"
import type { TestServer } from "../test/server.ts"

const dayMs = 86_400_000
const days = 30

export interface Company {
  readonly organizationId: string
  readonly billingAccountId: string
  /** What its keys are called, and how much of its traffic each brings. */
  readonly keys: readonly { readonly id: string; readonly share: number }[]
  /** The question set that its decisions ask. */
  readonly set: Triage
}

/** Everything that a running server can be asked to make; the receiver takes its webhooks. */
export async function settle(server: TestServer, receiver: string): Promise<Company> {
  const { api } = await ownerOf(server)
  const [organization] = await api.listOrganizations()
  if (!organization) throw new Error("Cannot furnish: the server has no organization")
  const { id: org_id, billing_account_id } = organization
  const params = { org_id }
  await api.updateOrganization({ params, body: { name: "Acme Outdoor" } })
  const keys: { id: string; share: number }[] = []
  for (const [name, share, permissions, lifetimeDays] of [
    ["ticket triage, production", 0.62, ["inference"], null],
    ["review moderation", 0.27, ["inference"], 340],
    ["nightly evaluation", 0.11, ["inference", "api-read"], 30],
    ["finance dashboard", 0, ["api-read"], 90],
  ] as const) {
    const expires = lifetimeDays === null ? {} : { expires_at: later(lifetimeDays) }
    const key = await api.createApiKey({
      params,
      body: { name, permissions: [...permissions], ...expires },
    })
    keys.push({ id: key.id, share })
  }
  await invite(api, createClient(server.url, {}), org_id)
  await trust(api, org_id)
  await spend(api, billing_account_id)
  await api.requestModelAccess({ params, body: { model_sku: "umpire-reserved" } })
  const set = await furnishSets(server, api, org_id)
  await furnishAlerts(api, org_id, { receiver, set })
  const [first] = keys
  if (first)
    await api.putKeyContentSettings({
      params: { org_id, key_id: first.id },
      body: { content: { keep: "answers", sample_rate: 0.1, retention_days: 7 } },
    })
  return { organizationId: org_id, billingAccountId: billing_account_id, keys, set }
}

const later = (inDays: number): string => new Date(Date.now() + inDays * dayMs).toISOString()

async function invite(api: Client, anyone: Client, org_id: string): Promise<void> {
  for (const [email, name, role] of [
    ["grace@acme.example", "Grace Hopper", "owner"],
    ["katherine@acme.example", "Katherine Johnson", "member"],
    ["radia@acme.example", "Radia Perlman", "member"],
    ["alan@acme.example", null, "member"],
  ] as const) {
    const { accept_token } = await api.createInvitation({ params: { org_id }, body: { email, role } })
    if (name && accept_token)
      await anyone.acceptInvitation({ body: { token: accept_token, name, password: "a long enough one" } })
  }
}

async function trust(api: Client, org_id: string): Promise<void> {
  for (const [name, issuer_uri, condition, attributes] of [
    [
      "GitHub Actions",
      "https://token.actions.githubusercontent.com",
      'assertion.repository_owner == "acme"',
      { team: "assertion.repository" },
    ],
    [
      "Production cluster",
      "https://oidc.acme.example/cluster/eu-1",
      'assertion.sub.startsWith("system:serviceaccount:")',
      { team: "assertion.namespace" },
    ],
  ] as const)
    await api.createWorkloadIdentityProvider({
      params: { org_id },
      body: {
        name,
        config: { type: "oidc", issuer_uri, allowed_audiences: ["https://umpire.acme.example"], jwks: null },
        attribute_condition: condition,
        attribute_transformations: { ...attributes },
        authorization_rules: [
          { condition: 'attribute.team == "acme/support"', permissions: ["inference", "api-read"] },
          { condition: "true", permissions: ["inference"] },
        ],
      },
    })
}

async function spend(api: Client, billing_account_id: string): Promise<void> {
  const params = { billing_account_id }
  for (const amount_in_cents of [20_000, 5_000, 10_000])
    await api.createRefill({ params, body: { amount_in_cents } })
  await api.putSpendControls({
    params,
    body: {
      prepaid_low_balance_warning_threshold_cents: 2_500,
      usage_spend_warning_threshold_cents: 20_000,
      usage_spend_cutoff_threshold_cents: 40_000,
    },
  })
}

/** The same records go where the ledger and where analytics would have put them. The server must not run. */
export async function charge(
  dataDirectory: string,
  records: readonly SequenceRecord[],
  set: Triage,
): Promise<void> {
  const database = await openPglite({ directory: join(dataDirectory, "database") })
  try {
    await database.transaction(
      async (sql) =>
        await applyUsage(sql, {
          gatewayId: "past",
          from: { segment: 0, offset: 0 },
          next: { segment: 0, offset: 1 },
          usage: digestRecords(records),
          now: new Date(),
        }),
    )
    await countAnswers(database, set, Date.now())
    // The month that is over gets its invoice when the server starts again, not minutes later.
    await database.query("UPDATE billing_accounts SET created_at = created_at - interval '60 days'")
    await database.query("DELETE FROM periodic_tasks")
  } finally {
    await database.close()
  }
}

export async function remember(server: TestServer, records: readonly SequenceRecord[]): Promise<void> {
  const file = join(server.dataDirectory, "past.jsonl")
  await writeFile(file, records.map((record) => JSON.stringify(record)).join("\n"))
  await (await operatorOf(server)).importEvents({ body: { file } })
}

const surfaces = [
  { call_source: "decisions", model: "umpire-decide", share: 0.58, tokens: 420, costTicks: 84_000_000 },
  { call_source: "systemone", model: "umpire-decide", share: 0.2, tokens: 260, costTicks: 52_000_000 },
  {
    call_source: "chat_completions",
    model: "smollm2-135m-instruct",
    share: 0.14,
    tokens: 900,
    costTicks: 310_000_000,
  },
  { call_source: "embeddings", model: "all-minilm-l6-v2", share: 0.08, tokens: 128, costTicks: 9_000_000 },
] as const

const failures = [
  ["context_length_exceeded", "The evidence has 17,204 tokens; umpire-decide reads at most 16,384."],
  ["invalid_request", "questions.1.choices: at least one choice is needed"],
  ["overloaded", "Every worker is busy; try again in a moment."],
  ["insufficient_credits", "The balance does not cover this request."],
] as const

const failureOf = (index: number): Pick<SequenceRecord, "error_code" | "error_message"> => {
  const [error_code, error_message] = failures[index] ?? failures[0]
  return { error_code, error_message }
}

const asked = ({ id, name, version }: Triage): Partial<SequenceRecord> => ({
  question_set_id: id,
  question_set: name,
  question_set_version: version,
  questions: 3,
})

const timesOf = (totalMs: number): Partial<SequenceRecord> => ({
  route_ms: 0.08,
  queue_ms: Math.round(totalMs * 0.15),
  engine_ms: Math.round(totalMs * 0.8),
  attempts: [{ region: "paris", result: "success", ms: Math.round(totalMs * 0.95) }],
})

/** Busy on working days, growing, with one bad evening; the same at every run but for the day it ends on. */
export function past(
  { organizationId, billingAccountId, keys, set }: Company,
  nowMs: number,
): SequenceRecord[] {
  const random = generator(7)
  const records: SequenceRecord[] = []
  for (let hour = days * 24; hour >= 1; hour--) {
    const startMs = nowMs - hour * 3_600_000
    const count = Math.round(busyness(startMs, hour) * (0.8 + random() * 0.4))
    const trouble = hour > 100 && hour < 105
    for (let index = 0; index < count; index++) {
      const surface = drawn(surfaces, random())
      const key = drawn(keys, random())
      const failed = random() < (trouble ? 0.35 : 0.012)
      const latencyMs = Math.round((40 + surface.tokens / 6) * (0.6 + random() ** 4 * 6) * (trouble ? 3 : 1))
      const generated = surface.call_source === "chat_completions" && !failed
      const ofSet = surface.call_source === "decisions"
      records.push(
        sequenceRecord({
          seq_id: `seq_past${String(records.length).padStart(6, "0")}`,
          timestamp: startMs + Math.floor(random() * 3_600_000),
          organization_id: organizationId,
          billing_account_id: billingAccountId,
          model: surface.model,
          call_source: surface.call_source,
          inference_type: surface.call_source === "embeddings" ? "embedding" : "generation",
          result: failed ? "error" : "success",
          ...(failed ? failureOf(trouble ? 2 : records.length % 4) : {}),
          input_tokens: failed ? 0 : Math.round(surface.tokens * (0.5 + random())),
          cached_input_tokens: failed ? 0 : Math.round(surface.tokens * 0.3 * random()),
          output_tokens: generated ? Math.round(40 + 160 * random()) : 0,
          gateway_latency_ms: latencyMs,
          seq_duration_ms: latencyMs * (generated ? 8 : 1),
          tool_calls: generated && random() < 0.3 ? [random() < 0.7 ? "find_order" : "refund"] : [],
          stop_reason: generated ? (random() < 0.9 ? "stop" : "length") : null,
          api_key_id: key.id,
          client_ip: `10.4.${records.length % 3}.${10 + (records.length % 5)}`,
          client_ua: "openai-node/7.53.0",
          request_id: `req_past${records.length}`,
          region: "paris",
          cost_ticks: failed ? "0" : String(Math.round(surface.costTicks * (0.5 + random()))),
          principal_kind: "key",
          principal_id: key.id,
          ...(ofSet ? { ...asked(set), abstained: failed ? null : Number(random() < 0.1) } : {}),
          tags: random() < 0.7 ? { team: "support", mailbox: random() < 0.5 ? "orders" : "returns" } : {},
          ...(failed ? {} : timesOf(latencyMs * (generated ? 8 : 1))),
        }),
      )
    }
  }
  return records
}

function busyness(atMs: number, hoursAgo: number): number {
  const at = new Date(atMs)
  const weekend = at.getUTCDay() % 6 === 0 ? 0.25 : 1
  const daytime = 0.25 + Math.max(0, Math.sin(((at.getUTCHours() - 5) / 16) * Math.PI))
  return 20 * weekend * daytime * (1.3 - hoursAgo / (days * 40))
}

function drawn<Item extends { readonly share: number }>(items: readonly Item[], at: number): Item {
  let sum = 0
  const found = items.find(({ share }) => (sum += share) > at) ?? items[0]
  if (!found) throw new Error("Cannot draw from nothing")
  return found
}

/** Numbers that look random and are the same every time (mulberry32). */
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
