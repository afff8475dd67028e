/** The served document is valid, and the Platform API keeps to it whatever it is sent. */
import { Validator } from "@seriousme/openapi-schema-validator"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { permissions } from "../src/contract/access.ts"
import { platformTable } from "../src/contract/table.ts"
import { openTestDatabase } from "./database.ts"
import { type Driver, createDriver } from "./openapi-driver.ts"
import { seedContent } from "./kept-content.ts"
import { type Platform, seeder, startPlatform } from "./platform.ts"

/** `npm run test:long` sets more. */
const runsPerOperation = Number(process.env["UMPIRE_TEST_RUNS"] ?? 6)
/** Inputs that succeed are rare for some operations: until one is met, that many times as many are tried. */
const roundsMax = 16
const seedOfRuns = 20261

let platform: Platform
let account: string

let document: Record<string, unknown>
let driver: Driver

beforeAll(async () => {
  platform = await startPlatform(await openTestDatabase())
  account = await seeder(platform).billingAccount()
  document = (await platform.send("GET", "/openapi.json")).body
  driver = createDriver(document)
})

afterAll(async () => {
  await platform.close()
  await platform.database.close()
})

test("the served document is valid OpenAPI", async () => {
  const result = await new Validator().validate(structuredClone(document))
  expect(result.errors ?? []).toEqual([])
  expect(result.valid).toBe(true)
})

test("every operation documents its errors, each with a body", () => {
  for (const { operationId, responses, path } of driver.operations) {
    const failures = Object.keys(responses).filter((status) => Number(status) >= 400)
    expect(failures, operationId).toContain("500")
    if (path.includes("{org_id}"))
      expect(failures, operationId).toEqual(expect.arrayContaining(["401", "403", "404", "429"]))
    for (const status of failures) expect(responses[status]?.content, operationId).toBeDefined()
  }
})

/** What a schema cannot know: the organization of the operator, tokens that only a mail or the operator has, codes and signatures of a device, the name of a model, a provider, a version, a network. */
const unreachable = new Set([
  "createSession",
  "describeInvitation",
  "acceptInvitation",
  "requestPasswordReset",
  "finishPasswordReset",
  "confirmSecondFactor",
  "replaceRecoveryCodes",
  "removeSecondFactor",
  "addPasskey",
  "removePasskey",
  "requestModelAccess",
  "startSingleSignOn",
  "finishSingleSignOn",
  "createQuestionSet",
  "importQuestionSet",
  "putQuestionSetLabel",
  "compareQuestionSetVersions",
  "addQuestionSetExamples",
  "uploadQuestionSetExamples",
  "updateQuestionSetExample",
  "deleteQuestionSetExample",
  "addQuestionSetCases",
  "deleteQuestionSetCase",
  "teachQuestionSet",
  "distilQuestionSet",
  "checkQuestionSet",
  "getQuestionSetJob",
  "cancelQuestionSetJob",
  "getQuestionSetArtefact",
  "getQuestionSetMonitoring",
  "createWebhook",
  "createAlertRule",
  "getWebhookDelivery",
  "resendWebhookDelivery",
  "putKeyContentSettings",
  "decideReviewItem",
  "undoReviewItem",
  "createGuardrail",
  "updateGuardrail",
  "listConnectedModels",
  "createConnectedModel",
  "deleteConnectedModel",
  "checkConnectedModel",
  "createVirtualModel",
  "updateVirtualModel",
  "createApiKey",
  "updateApiKey",
  "endSession",
  "endMemberSession",
])

describe.each(Object.keys(platformTable))("%s", (name) => {
  test("answers what it documents, never a 500, whatever it is sent", async () => {
    const operation = driver.operations.find(({ operationId }) => operationId === name)
    if (!operation) throw new Error(`the document lacks ${name}`)
    const place = await freshPlace(operation.path)
    const reached = new Set<number>()
    const property = fc.asyncProperty(
      driver.requests(operation, place.ids),
      fc.boolean(),
      async ({ path, body }, useKey) => {
        const bearer = useKey ? place.key : await place.session()
        const answer = await platform.send(operation.method, path, {
          bearer,
          ...(body === undefined ? {} : { body }),
        })
        reached.add(answer.status)
        driver.check(operation, answer)
        if (answer.status >= 400)
          expect(Object.keys(answer.body.error).toSorted()).toEqual(["code", "details", "message"])
      },
    )
    const success =
      Object.keys(operation.responses)
        .map(Number)
        .find((status) => status < 400) ?? 0
    const rounds = unreachable.has(name) ? 1 : roundsMax
    for (let round = 0; round < rounds && !reached.has(success); round++)
      await fc.assert(property, { numRuns: runsPerOperation, seed: seedOfRuns + round })
    if (!unreachable.has(name)) expect([...reached]).toContain(success)
  })
})

interface Place {
  readonly key: string
  /** By the name of the path parameter. */
  readonly ids: Readonly<Record<string, readonly string[]>>
  session(): Promise<string>
}

const targetsPerOperation = 3

/** An organization of its own for each operation, with what its path can name. */
async function freshPlace(path: string): Promise<Place> {
  const seed = seeder(platform)
  const org = await seed.organization("Generated", account)
  const owner = await seed.user(`${org}@schema.test`)
  await seed.member(org, owner, "primary_owner")
  const bearer = await seed.session(owner)
  const makers: Record<string, (index: number) => Promise<string>> = {
    user_id: async (index) => {
      const id = await seed.user(`${index}${org}@schema.test`)
      await seed.member(org, id, "member")
      return id
    },
    key_id: async () => (await seed.key(org, ["api-read"])).id,
    set_id: async (index) => {
      const at = `/v1/organizations/${org}/question_sets`
      const rude = { type: "predicate", name: "rude", instructions: "Is it rude?" }
      const body = { name: `set-${index}`, model: "open", questions: [rude] }
      const { id } = (await platform.send("POST", at, { bearer, body })).body.data
      for (const label of ["production", "stable"])
        await platform.send("PUT", `${at}/${id}/labels/${label}`, { bearer, body: { version: 1 } })
      return id
    },
    webhook_id: async () => {
      const body = { url: "https://receiver.example/hook" }
      const sent = await platform.send("POST", `/v1/organizations/${org}/webhooks`, { bearer, body })
      return sent.body.data.id
    },
    rule_id: async (index) => {
      const body = { name: `rule ${index}`, kind: "error_rate" }
      const sent = await platform.send("POST", `/v1/organizations/${org}/alert_rules`, { bearer, body })
      return sent.body.data.id
    },
    model_id: async (index) => {
      const body = { name: `virtual-${index}`, alias: "open" }
      const sent = await platform.send("POST", `/v1/organizations/${org}/models`, { bearer, body })
      return sent.body.data.id
    },
    guardrail_id: async (index) => {
      const rude = { type: "predicate", name: "rude", instructions: "Is it rude?" }
      const set = { name: `guard-${index}`, model: "open", questions: [rude] }
      await platform.send("POST", `/v1/organizations/${org}/question_sets`, { bearer, body: set })
      const body = { name: `guardrail ${index}`, question_set: set.name }
      const sent = await platform.send("POST", `/v1/organizations/${org}/guardrails`, { bearer, body })
      return sent.body.data.id
    },
    seq_id: async (index) =>
      (await seedContent(platform, { organizationId: org, evidence: `Text ${index}` })).seqId,
    invitation_id: async (index) => {
      const body = { email: `invited${index}${org}@schema.test`, role: "member" }
      const sent = await platform.send("POST", `/v1/organizations/${org}/invites`, { bearer, body })
      return sent.body.data.id
    },
  }
  const ids: Record<string, string[]> = {
    org_id: [org],
    version: ["1", "latest"],
    label: ["production", "stable"],
  }
  for (const [name, make] of Object.entries(makers))
    for (let index = 0; path.includes(`{${name}}`) && index < targetsPerOperation; index++)
      (ids[name] ??= []).push(await make(index))
  return {
    key: (await seed.key(org, permissions)).value,
    ids,
    session: async () => await seed.session(owner),
  }
}
