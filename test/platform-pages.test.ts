/** Every list that comes in pages refuses a cursor that it cannot have given, and takes the one that it gave. */
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Endpoint } from "../src/contract/endpoint.ts"
import { table } from "../src/contract/table.ts"
import { openTestDatabase } from "./database.ts"
import { type Platform, seeder, startPlatform } from "./platform.ts"

let platform: Platform
let bearer: string
let organizationId: string
let accountId: string
let webhookId: string

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase())
  const seed = seeder(platform)
  accountId = await seed.billingAccount()
  organizationId = await seed.organization("Paged", accountId)
  const owner = await seed.user("owner@example.com")
  await seed.member(organizationId, owner, "primary_owner")
  await seed.member(organizationId, await seed.user("member@example.com"), "member")
  bearer = await seed.session(owner)
  await seed.key(organizationId, ["api-read"])
  await seed.key(organizationId, ["api-read"])
  const hook = { url: "https://hooks.example.com/umpire" }
  const made = await platform.send("POST", `/v1/organizations/${organizationId}/webhooks`, {
    bearer,
    body: hook,
  })
  webhookId = made.body.data.id
  const rude = { type: "predicate", name: "rude", instructions: "Is it rude?" }
  for (const name of ["paged", "paged-too"]) {
    const body = { name, model: "open", questions: [rude] }
    await platform.send("POST", `/v1/organizations/${organizationId}/question_sets`, { bearer, body })
  }
  const rows = ["one", "two"].map((input) => ({ input, labels: { rude: true } }))
  const cases = ["one", "two"].map((input) => ({ input, expected: { rude: true } }))
  const set = `/v1/organizations/${organizationId}/question_sets/paged`
  await platform.send("POST", `${set}/examples`, { bearer, body: { rows } })
  await platform.send("POST", `${set}/cases`, { bearer, body: { cases } })
  for (const path of ["teach", "check"]) await platform.send("POST", `${set}/${path}`, { bearer, body: {} })
  await platform.send("PATCH", set, {
    bearer,
    body: { calibration: { temperature: 2, bias: 0 } },
  })
})
afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

const lists = Object.entries<Endpoint>(table).filter(
  ([, { query }]) => "shape" in query && "cursor" in Object(query.shape),
)
const at = (path: string): string =>
  path
    .replace("{org_id}", organizationId)
    .replace("{billing_account_id}", accountId)
    .replace("{set_id}", "paged")
    .replace("{webhook_id}", webhookId)
const read = async (path: string, query: string) =>
  await platform.send("GET", `${at(path)}?${query}`, { bearer })

test("the lists are found", () => expect(lists.length).toBeGreaterThanOrEqual(6))

describe.each(lists.map(([name, { path }]) => [name, path]))("%s", (_, path) => {
  test.each(["nonsense", "1.5", "key_", "usr_00000000000000000000000000", "%27", "a.b", "0.usr_x"])(
    "the cursor %s is 400",
    async (cursor) => {
      const { status, body } = await read(path, `cursor=${cursor}`)
      expect([status, body.error?.code]).toEqual([400, "invalid_query"])
    },
  )
})

test.each([
  "members",
  "api_keys",
  "question_sets",
  "question_sets/paged/versions",
  "question_sets/paged/examples",
  "question_sets/paged/cases",
  "question_sets/paged/jobs",
])("%s goes on after its own cursor", async (list) => {
  const path = `/v1/organizations/{org_id}/${list}`
  const first = await read(path, "limit=1")
  const second = await read(path, `limit=1&cursor=${first.body.next_cursor}`)
  expect([second.status, second.body.data.length, second.body.next_cursor]).toEqual([200, 1, null])
})
