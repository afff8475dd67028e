import { expect, test } from "vitest"
import { openapi } from "../../../src/contract/openapi.ts"
import { type EndpointName, table } from "../../../src/contract/table.ts"
import { readDocument } from "./document.ts"
import { type Known, bodyFor, notFromHere, parametersFor } from "./examples.ts"

const reference = readDocument(
  JSON.parse(JSON.stringify(openapi(table, { title: "Umpire", version: "1", description: "" }))),
)
const known: Known = {
  organizationId: "org_1",
  organizationName: "Acme",
  billingAccountId: "ba_1",
  userId: "user_1",
  userName: "Ada Lovelace",
  email: "ada@example.com",
  models: { decisions: "decider", chat: "writer", embeddings: "embedder" },
}
const tried = reference.operations.filter(({ id }) => !(id in notFromHere))

test.each(tried.filter(({ body }) => body).map((operation) => [operation.id, operation] as const))(
  "the body that %s is filled with is accepted",
  (id, operation) => {
    const parsed = table[id as EndpointName].body.safeParse(bodyFor(operation, known, reference.schemas))
    expect(parsed.error?.issues ?? []).toEqual([])
  },
)

test.each([
  ["createDecision", "decider"],
  ["createSystemOne", "decider"],
  ["createChatCompletion", "writer"],
  ["createResponse", "writer"],
  ["createEmbedding", "embedder"],
])("%s names a model of the organization", (id, model) => {
  const operation = reference.operations.find((one) => one.id === id)
  expect(operation && bodyFor(operation, known, reference.schemas)).toMatchObject({ model })
})

test("the required query of analytics is filled with a range that is accepted", () => {
  const operation = tried.find(({ id }) => id === "getAnalyticsOverview")
  const values = operation ? parametersFor(operation, known, 1_800_000_000_000) : {}
  expect(values["org_id"]).toBe("org_1")
  expect(table.getAnalyticsOverview.query.safeParse(values).error?.issues ?? []).toEqual([])
})

test("an id of something that could be changed or deleted is left to the reader", () => {
  const remove = tried.find(({ id }) => id === "deleteApiKey")
  expect(remove && parametersFor(remove, known, 0)).not.toHaveProperty("key_id")
})
