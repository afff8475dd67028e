/** Walks the whole matrix: every endpoint for every kind of caller. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { type Permission, type Role, permissions } from "../src/contract/access.ts"
import type { Endpoint } from "../src/contract/endpoint.ts"
import { table } from "../src/contract/table.ts"
import { createOneTimeLink } from "../src/control/sessions.ts"
import { insertBatch } from "../src/store/batches/batches.ts"
import { insertConversation } from "../src/store/conversations.ts"
import { identityProviders } from "../src/store/identity-providers.ts"
import { saveStoredResponse } from "../src/store/responses.ts"
import { run } from "../src/store/rows.ts"
import { accessMatrix } from "./access-matrix.ts"
import { type Places, type Row, sessionRoles, singlePermissions, userKeyRoles } from "./access-matrix/row.ts"
import { openTestDatabase } from "./database.ts"
import { type Platform, seeder, startPlatform, workloadToken } from "./platform.ts"
import { seedConnectedModel } from "./connected-model.ts"
import { seedContent } from "./kept-content.ts"
import { seedArtefact } from "./taught.ts"

let platform: Platform
let seed: ReturnType<typeof seeder>
let places: Places
let foreignOrg: string
let users: Record<"primary_owner" | "owner" | "member" | "outsider", string>
let made = 0

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase())
  seed = seeder(platform)
  const account = await seed.billingAccount()
  const org = await seed.organization("Matrix", account)
  foreignOrg = await seed.organization("Elsewhere", await seed.billingAccount())
  const user = async (role: keyof typeof users): Promise<string> => {
    const id = await seed.user(`${role}@matrix.test`)
    await (role === "outsider" ? seed.member(foreignOrg, id, "primary_owner") : seed.member(org, id, role))
    return id
  }
  users = {
    primary_owner: await user("primary_owner"),
    owner: await user("owner"),
    member: await user("member"),
    outsider: await user("outsider"),
  }
  const owner = await seed.session(users.primary_owner)
  const now = new Date()
  // Its handlers are stubs here; that it exists is asked of the store.
  const row = { id: "wi_1", organizationId: org, createdAt: now, updatedAt: now }
  await identityProviders.insert(platform.database, row, {
    name: "matrix",
    active: true,
    config: { type: "x509", trust_anchors: [], intermediate_cas: [] },
    attributeTransformations: {},
    authorizationRules: [],
  })
  // Likewise what rows of inference name.
  const { id, organizationId, createdAt } = { ...row, id: "x_1" }
  await insertConversation(platform.database, {
    id,
    organizationId,
    metadata: "{}",
    createdAt,
    usedAt: createdAt,
  })
  const stored = { id, organizationId, previousId: null, body: "{}", input: "[]", pieces: null, createdAt }
  await saveStoredResponse(platform.database, stored, { items: [], hasBegun: false })
  const input = { organizationId, storage: "files", sha256: "ab" }
  await run(platform.database)`INSERT INTO file_blobs (organization_id, storage, sha256, bytes)
    VALUES (${input.organizationId}, ${input.storage}, ${input.sha256}, 0)`
  await insertBatch(platform.database, {
    id: "batch_1",
    organizationId,
    principal: "{}",
    endpoint: "/v1/decisions",
    inputFileId: "file_1",
    storage: input.storage,
    inputSha256: input.sha256,
    completionWindow: "24h",
    metadata: null,
    createdAt,
    expiresAt: createdAt,
  })
  places = {
    org,
    account,
    member: async () => {
      const id = await seed.user(`extra${++made}@matrix.test`)
      await seed.member(org, id, "member")
      return id
    },
    key: async () => (await seed.key(org, ["api-admin"])).id,
    invitation: async () => {
      const body = { email: `invited${++made}@matrix.test`, role: "member" }
      const sent = await platform.send("POST", `/v1/organizations/${org}/invites`, { bearer: owner, body })
      return { id: sent.body.data.id, token: sent.body.data.accept_token }
    },
    questionSet: async () => {
      const at = `/v1/organizations/${org}/question_sets`
      const send = async (method: string, path: string, body?: unknown) =>
        (await platform.send(method, at + path, { bearer: owner, ...(body === undefined ? {} : { body }) }))
          .body
      const { id } = (await send("POST", "", { name: `set-${++made}`, model: "open", questions: [rude] }))
        .data
      await send("PUT", `/${id}/labels/stable`, { version: 1 })
      await send("POST", `/${id}/examples`, { rows: [{ input: "Go away", labels: { rude: true } }] })
      await send("POST", `/${id}/cases`, { cases: [{ input: "Go away", expected: { rude: true } }] })
      const [example] = (await send("GET", `/${id}/examples`)).data
      const [frozen] = (await send("GET", `/${id}/cases`)).data
      const job = (await send("POST", `/${id}/teach`, {})).data
      // Jobs of an organization are few at a time; nothing runs them here.
      await platform.database.query("UPDATE question_set_jobs SET state = 'succeeded'")
      const artefact = await seedArtefact(platform.database, id)
      return { id, example: example.id, case: frozen.id, job: job.id, artefact }
    },
    alerts: async () => {
      const at = `/v1/organizations/${org}`
      // An organization has a few webhooks at most.
      await platform.database.query("DELETE FROM webhooks WHERE organization_id = $1", [org])
      await platform.database.query("DELETE FROM alert_rules WHERE organization_id = $1", [org])
      const post = async (path: string, body?: unknown): Promise<string> =>
        (await platform.send("POST", at + path, { bearer: owner, ...(body === undefined ? {} : { body }) }))
          .body.data.id
      const webhook = await post("/webhooks", { url: "https://receiver.example/hook" })
      const delivery = await post(`/webhooks/${webhook}/test`)
      const rule = await post("/alert_rules", { name: "Errors", kind: "error_rate" })
      return { webhook, delivery, rule }
    },
    content: async () => {
      const at = `/v1/organizations/${org}/question_sets`
      const body = { name: `set-${++made}`, model: "open", questions: [rude] }
      const set = (await platform.send("POST", at, { bearer: owner, body })).body.data.id as string
      const seeded = await seedContent(platform, {
        organizationId: org,
        evidence: `Go away ${made}`,
        setId: set,
      })
      return { seq: seeded.seqId, set, item: seeded.itemId }
    },
    virtualModel: async () => {
      await platform.database.query("DELETE FROM virtual_models WHERE organization_id = $1", [org])
      const body = { name: "fast", alias: "open" }
      return (await platform.send("POST", `/v1/organizations/${org}/models`, { bearer: owner, body })).body
        .data.id
    },
    connectedModel: async () => await seedConnectedModel(platform, org, `elsewhere-${++made}`),
    guardrail: async () => {
      const at = `/v1/organizations/${org}`
      // An organization has a few guardrails at most.
      await platform.database.query("DELETE FROM guardrails WHERE organization_id = $1", [org])
      const set = `guard-${++made}`
      const post = async (path: string, body: unknown): Promise<string> =>
        (await platform.send("POST", at + path, { bearer: owner, body })).body.data.id
      await post("/question_sets", { name: set, model: "open", questions: [rude] })
      return { id: await post("/guardrails", { name: "Polite", question_set: set }), set }
    },
    link: async () => {
      const id = await seed.user(`linked${++made}@matrix.test`)
      return (await createOneTimeLink(platform.database, { userId: id, purpose: "sign_in" }, new Date())).link
    },
  }
})

afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

const rude = { type: "predicate", name: "rude", instructions: "Is it rude?" }

interface Case {
  readonly who: string
  readonly status: number
  /** What identifies the caller; one of its own where the call changes something, perhaps the caller itself. */
  readonly bearer: (isOwn: boolean) => Promise<string | null>
}

const shared = new Map<string, Promise<string>>()

/** One caller of each kind is asked for whatever changes nothing. */
function caller(who: string, make: () => Promise<string>): Omit<Case, "status"> {
  const common = (): Promise<string> => {
    const known = shared.get(who) ?? make()
    shared.set(who, known)
    return known
  }
  return { who, bearer: (isOwn) => (isOwn ? make() : common()) }
}

function casesOf(row: Row): Case[] {
  return [
    { who: "no token", status: Number(row.nobody ?? 401), bearer: async () => null },
    { who: "garbage", status: Number(row.unknown ?? 401), bearer: async () => "garbage" },
    {
      ...caller("expired session", () => seed.session(users.primary_owner, -1)),
      status: Number(row.unknown ?? 401),
    },
    ...zip(row.sessions, sessionRoles, (role) =>
      caller(`session of ${role}`, async () => await seed.session(await twinOf(role))),
    ),
    ...zip(row.keys, singlePermissions, (permission) =>
      caller(
        `organization key with ${permission}`,
        async () => (await seed.key(places.org, [permission])).value,
      ),
    ),
    ...zip(row.userKeys, userKeyRoles, (role) =>
      caller(`user key of ${role}`, async () => (await seed.key(places.org, permissions, users[role])).value),
    ),
    ...zip(row.workloads, singlePermissions, (permission: Permission) =>
      caller(`workload token with ${permission}`, async () => workloadToken(places.org, [permission])),
    ),
    {
      ...caller("key of another organization", async () => (await seed.key(foreignOrg, permissions)).value),
      status: Number(row.foreignKey),
    },
  ]
}

async function twinOf(role: Role | "outsider"): Promise<string> {
  const id = await seed.user(`twin${++made}@matrix.test`)
  await (role === "outsider"
    ? seed.member(foreignOrg, id, "primary_owner")
    : seed.member(places.org, id, role))
  return id
}

function zip<Item>(
  statuses: string,
  items: readonly Item[],
  make: (item: Item) => Omit<Case, "status">,
): Case[] {
  const given = statuses.split(" ")
  if (given.length !== items.length)
    throw new Error(`the row has ${given.length} statuses for ${items.length}`)
  return items.map((item, index) => ({ ...make(item), status: Number(given[index]) }))
}

const changes: Readonly<Partial<Record<Role, readonly string[]>>> = {
  reviewer: [
    "POST /v1/organizations/{org_id}/question_sets/{set_id}/review/{item_id}",
    "DELETE /v1/organizations/{org_id}/question_sets/{set_id}/review/{item_id}/label",
  ],
  billing: [
    "POST /v1/billing_accounts/{billing_account_id}/refill",
    "PUT /v1/billing_accounts/{billing_account_id}/spend_controls",
    "PUT /v1/billing_accounts/{billing_account_id}/auto_refill",
    "PUT /v1/billing_accounts/{billing_account_id}/buyer",
    "POST /v1/billing_accounts/{billing_account_id}/payment_method",
    "DELETE /v1/billing_accounts/{billing_account_id}/payment_method",
  ],
}

test.each(Object.entries(changes))(
  "a member with the role %s changes only what it is for",
  async (role, own) => {
    const changed: string[] = []
    const read: string[] = []
    for (const row of accessMatrix) {
      const [method = "", path = ""] = row.endpoint.split(" ")
      const isOfOrganization = /^\/v1\/(?:organizations\/|billing_accounts\/)/.test(path)
      if (!isOfOrganization && !/^\/v1\/(?:decisions|systemone|chat|responses|messages)/.test(path)) continue
      const { path: at, ...sent } = await row.request(places)
      // The keys of an object lose the type of its type.
      const bearer = await seed.session(await twinOf(role as Role))
      const { status } = await platform.send(method, at, { bearer, ...sent })
      const [owner, , member] = row.sessions.split(" ").map(Number)
      const reads = method === "GET" || path.endsWith("/content/search")
      if (!reads && status === owner) changed.push(row.endpoint)
      // They read what a member reads, and run no model.
      if (reads && status !== (isOfOrganization ? member : 403)) read.push(`${row.endpoint}: ${status}`)
    }
    expect(changed.toSorted()).toEqual(own.toSorted())
    expect(read).toEqual([])
  },
)

const existing = new Set(Object.values<Endpoint>(table).map(({ method, path }) => `${method} ${path}`))

test("every endpoint has exactly one row in the matrix, and every row an endpoint", () => {
  const named = accessMatrix.map(({ endpoint }) => endpoint)
  expect(named.toSorted()).toEqual([...existing].toSorted())
})

test.each(accessMatrix)("$endpoint", async (row) => {
  const [method = "GET"] = row.endpoint.split(" ")
  const given: string[] = []
  // What is refused or only reads changes nothing, so one request serves all such callers; those come before the others.
  const cases = casesOf(row).toSorted((a, b) => Number(b.status >= 400) - Number(a.status >= 400))
  let common: ReturnType<Row["request"]> | undefined
  for (const { who, status, bearer } of cases) {
    const changes = status < 400 && method !== "GET"
    const { path, ...sent } = await (changes ? row.request(places) : (common ??= row.request(places)))
    const answer = await platform.send(method, path, { bearer: await bearer(changes), ...sent })
    if (answer.status >= 400 && !answer.body.error) given.push(`${who}: ${answer.status} without an error`)
    else if (answer.status === status) given.push(`${who}: ${status}`)
    else given.push(`${who}: ${answer.status} ${JSON.stringify(answer.body)}`)
  }
  expect(given).toEqual(cases.map(({ who, status }) => `${who}: ${status}`))
})
