/** Ids of two organizations, mixed through every path parameter, never let one see or change the other. */
import fc from "fast-check"
import { afterAll, beforeAll, expect, test } from "vitest"
import { permissions } from "../src/contract/access.ts"
import { type Endpoint } from "../src/contract/endpoint.ts"
import { platformTable, table } from "../src/contract/table.ts"
import { openTestDatabase } from "./database.ts"
import { type Platform, seeder, startPlatform } from "./platform.ts"
import { connectedModel, seedConnectedModel } from "./connected-model.ts"
import { seedContent } from "./kept-content.ts"
import { seedArtefact } from "./taught.ts"

const runs = 300

interface Side {
  /** By path parameter. */
  readonly ids: Readonly<Record<string, string>>
  /** Text that only its own principals may see. */
  readonly marks: readonly string[]
  readonly bearers: readonly string[]
}

let platform: Platform
let ours: Side
let theirs: Side

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase())
  ours = await side("ours")
  theirs = await side("theirs")
})

afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

const rude = { type: "predicate", name: "rude", instructions: "Is it rude?" }

async function side(name: string): Promise<Side> {
  const seed = seeder(platform)
  const account = await seed.billingAccount()
  const org = await seed.organization(`mark-${name}-organization`, account)
  const owner = await seed.user(`mark-${name}-owner@example.com`)
  const member = await seed.user(`mark-${name}-member@example.com`)
  await seed.member(org, owner, "primary_owner")
  await seed.member(org, member, "member")
  const bearer = await seed.session(owner)
  const sent = await platform.send("POST", `/v1/organizations/${org}/invites`, {
    bearer,
    body: { email: `mark-${name}-invited@example.com`, role: "member" },
  })
  const set = await platform.send("POST", `/v1/organizations/${org}/question_sets`, {
    bearer,
    body: { name: `mark-${name}-set`, description: `mark-${name}`, model: "open", questions: [rude] },
  })
  const inSet = async (method: string, path: string, body?: unknown) =>
    (
      await platform.send(method, `/v1/organizations/${org}/question_sets/mark-${name}-set${path}`, {
        bearer,
        ...(body === undefined ? {} : { body }),
      })
    ).body
  await inSet("POST", "/examples", { rows: [{ input: `mark-${name}`, labels: { rude: true } }] })
  await inSet("POST", "/cases", { cases: [{ input: `mark-${name}`, expected: { rude: true } }] })
  const key = await seed.key(org, ["api-read"])
  const post = async (path: string, body?: unknown): Promise<string> =>
    (
      await platform.send("POST", `/v1/organizations/${org}${path}`, {
        bearer,
        ...(body === undefined ? {} : { body }),
      })
    ).body.data.id
  const webhook = await post("/webhooks", { url: `https://mark-${name}.example/` })
  const setId = set.body.data.id as string
  const content = await seedContent(platform, { organizationId: org, evidence: `mark-${name}`, setId })
  const ids = {
    org_id: org,
    billing_account_id: account,
    user_id: member,
    key_id: key.id,
    invitation_id: sent.body.data.id as string,
    set_id: setId,
    seq_id: content.seqId,
    item_id: content.itemId,
    example_id: (await inSet("GET", "/examples")).data[0].id as string,
    case_id: (await inSet("GET", "/cases")).data[0].id as string,
    job_id: (await inSet("POST", "/teach", {})).data.id as string,
    webhook_id: webhook,
    delivery_id: await post(`/webhooks/${webhook}/test`),
    connected_model_id: await seedConnectedModel(platform, org, `mark-${name}`),
    model_id: await post("/models", { name: `mark-${name}`, alias: "open" }),
    guardrail_id: await post("/guardrails", { name: `mark-${name}`, question_set: set.body.data.name }),
    rule_id: await post("/alert_rules", { name: `mark-${name}`, kind: "error_rate" }),
    hash: await seedArtefact(platform.database, set.body.data.id as string),
  }
  return {
    ids,
    marks: [`mark-${name}`, ...Object.values(ids), owner],
    bearers: [
      bearer,
      (await seed.key(org, permissions)).value,
      (await seed.key(org, permissions, owner)).value,
    ],
  }
}

/** Enough for each write to pass its schema, so that the ids decide. */
const bodies: Readonly<Record<string, unknown>> = {
  updateOrganization: { name: "taken over" },
  updateMember: { role: "owner" },
  putSingleSignOnPolicy: { required: true },
  createInvitation: { email: "intruder@example.com", role: "member" },
  requestModelAccess: { model_sku: "closed" },
  putRoutingPolicy: {},
  putTagBudget: { key: "team", value: "taken over", budgets: [] },
  createApiKey: { name: "intruder", permissions: ["api-read"] },
  updateApiKey: { name: "taken over" },
  rotateApiKey: {},
  createQuestionSet: { name: "intruder", model: "open", questions: [] },
  importQuestionSet: { yaml: "name: intruder\nmodel: open\nquestions: []\n" },
  updateQuestionSet: { description: "taken over" },
  putQuestionSetLabel: { version: 1 },
  addQuestionSetExamples: { rows: [{ input: "taken over", labels: { rude: true } }] },
  updateQuestionSetExample: { labels: { rude: false } },
  teachQuestionSet: {},
  checkQuestionSet: {},
  runQuestionSetComparison: { from: "1" },
  proposeQuestionSetLabels: {},
  distilQuestionSet: { model: "open", budget_usd: "1", texts: ["intruder"] },
  createAlertRule: { name: "intruder", kind: "error_rate" },
  updateAlertRule: { name: "taken over" },
  createWebhook: { url: "https://intruder.example/" },
  updateWebhook: { url: "https://intruder.example/" },
  rotateWebhook: {},
  addQuestionSetCases: { cases: [{ input: "taken over", expected: { rude: true } }] },
  putContentSettings: { keep: "answers" },
  putKeyContentSettings: { content: { keep: "answers" } },
  deleteContents: { reference: "taken over" },
  decideReviewItem: { label: "yes" },
  updateReviewSettings: { sample_rate: 1 },
  createGuardrail: { name: "intruder", question_set: "pii" },
  updateGuardrail: { enabled: false },
  createVirtualModel: { name: "intruder", alias: "open" },
  updateVirtualModel: { alias: "closed" },
  createConnectedModel: { ...connectedModel, sku: "intruder" },
  checkConnectedModel: {},
}

/** Everything about an organization that a change could touch. */
async function stateOf({ ids }: Side): Promise<unknown> {
  const tables = [
    "memberships",
    "invitations",
    "api_keys",
    "model_access",
    "routing_policies",
    "tag_budgets",
    "question_sets",
    "webhooks",
    "deliveries",
    "alert_rules",
    "guardrails",
    "virtual_models",
    "connected_models",
    "content",
    "content_settings",
    "key_content_settings",
    "content_deletions",
    "review_items",
    "audit_log",
  ]
  const rows = tables.map(
    async (name) =>
      await platform.database.query(
        `SELECT to_jsonb(t) - 'last_used_at' AS row FROM ${name} t WHERE organization_id = $1 ORDER BY 1`,
        [ids["org_id"] ?? ""],
      ),
  )
  const inSets = [
    "question_set_versions",
    "question_set_labels",
    "question_set_examples",
    "question_set_cases",
    "question_set_jobs",
  ]
  const rowsOfSets = inSets.map(
    async (name) =>
      await platform.database.query(`SELECT to_jsonb(t) AS row FROM ${name} t WHERE set_id = $1 ORDER BY 1`, [
        ids["set_id"] ?? "",
      ]),
  )
  const own = platform.database.query("SELECT name, version::text FROM organizations WHERE id = $1", [
    ids["org_id"] ?? "",
  ])
  return await Promise.all([...rows, ...rowsOfSets, own])
}

const withIds = Object.entries<Endpoint>(platformTable).filter(([, { path }]) => path.includes("{"))
const parameterNames = (path: string): string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name)

test("a path with any id of another organization answers 404, tells nothing and changes nothing", async () => {
  const before = await stateOf(theirs)
  // The sessions of a user belong to no organization.
  const owned = withIds.filter(([, { path }]) => parameterNames(path).some((name) => name in theirs.ids))
  const mixed = fc.constantFrom(...owned).chain(([name, endpoint]) => {
    // Labels and versions are named by their owner, so they are no ids.
    const names = parameterNames(endpoint.path).filter((parameter) => parameter in theirs.ids)
    return fc.record({
      name: fc.constant(name),
      endpoint: fc.constant(endpoint),
      // At least one id is theirs: of the right kind, or of any other.
      foreign: fc.subarray(names, { minLength: 1 }),
      wrongKind: fc.option(fc.constantFrom(...Object.values(theirs.ids)), { freq: 4 }),
      bearer: fc.constantFrom(...ours.bearers),
      cursor: fc.boolean(),
    })
  })
  await fc.assert(
    fc.asyncProperty(mixed, async ({ name, endpoint, foreign, wrongKind, bearer, cursor }) => {
      const path = endpoint.path.replace(/\{(\w+)\}/g, (_, parameter: string) => {
        if (!foreign.includes(parameter)) return ours.ids[parameter] ?? ""
        return wrongKind ?? theirs.ids[parameter] ?? ""
      })
      const query = cursor && endpoint.method === "GET" ? `?cursor=${theirs.ids["key_id"]}` : ""
      const body = endpoint.consumes ? "input,rude\ntaken over,yes\n" : bodies[name]
      const headers = endpoint.consumes ? { "content-type": endpoint.consumes[0] ?? "" } : {}
      const sent = { bearer, headers, ...(body === undefined ? {} : { body }) }
      const answer = await platform.send(endpoint.method, path + query, sent)
      // A cursor that the list cannot have given is 400 for every caller: the shape of a request comes before its ids.
      const expected = query === "" ? [404, 403] : [404, 403, 400]
      expect(expected, `${endpoint.method} ${path}`).toContain(answer.status)
      // Only these refuse our organization's key, by its kind; nothing about the ids shows in that.
      if (answer.status === 403)
        expect(name).toMatch(/^put(?:RoutingPolicy|SingleSignOnPolicy)$|ConnectedModels?$/)
      const text = JSON.stringify(answer.body)
      for (const mark of theirs.marks) expect(text).not.toContain(mark)
    }),
    { numRuns: runs, seed: 7 },
  )
  expect(await stateOf(theirs)).toEqual(before)
})

test("a cursor of another organization pages through one's own entries only", async () => {
  for (const [, endpoint] of withIds) {
    if (endpoint.wrap !== "none") continue
    const path = endpoint.path.replace("{org_id}", ours.ids["org_id"] ?? "")
    for (const cursor of Object.values(theirs.ids)) {
      const answer = await platform.send("GET", `${path}?cursor=${cursor}`, { bearer: ours.bearers[0] ?? "" })
      const text = JSON.stringify(answer.body)
      for (const mark of theirs.marks) expect(text.replace(cursor, ""), path).not.toContain(mark)
    }
  }
})

test("every endpoint under an organization or billing account hides those of others from every bearer", async () => {
  for (const endpoint of Object.values<Endpoint>(table)) {
    if (!/\{(org_id|billing_account_id)\}/.test(endpoint.path) || endpoint.method !== "GET") continue
    const path = endpoint.path.replace(/\{(\w+)\}/g, (_, name: string) => theirs.ids[name] ?? "x")
    for (const bearer of ours.bearers) {
      const query = "?range_start=1&range_end=2&group_by=model&metric=requests"
      const answer = await platform.send("GET", path + query, { bearer })
      // Keys are refused by their kind where only sessions are accepted, whatever the path names.
      const isAccepted = bearer === ours.bearers[0] || endpoint.access.principals.includes("key")
      expect(answer.status, path).toBe(isAccepted ? 404 : 403)
    }
  }
})
