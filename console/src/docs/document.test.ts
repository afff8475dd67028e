import { expect, test } from "vitest"
import { openapi } from "../../../src/contract/openapi.ts"
import { table } from "../../../src/contract/table.ts"
import { exampleOf, innerSchema, readDocument, typeOf } from "./document.ts"

const reference = readDocument(
  JSON.parse(JSON.stringify(openapi(table, { title: "Umpire", version: "1", description: "" }))),
)

test("the reference shows every endpoint of the table", () => {
  expect(reference.operations.map(({ id }) => id).toSorted()).toEqual(Object.keys(table).toSorted())
})

test("the example of a decision is a decision, ready to be filled in", () => {
  const decision = reference.operations.find(({ id }) => id === "createDecision")
  const body = decision?.body ? exampleOf(decision.body, reference.schemas) : null
  expect(body).toMatchObject({ model: "text", questions: [{ type: "predicate", instructions: "text" }] })
})

test("a part that holds itself, such as the state of System One, has an end", () => {
  for (const { properties = {} } of Object.values(reference.schemas))
    for (const field of Object.values(properties)) innerSchema(field, reference.schemas)
  const request = reference.schemas["SystemOneRequest"]
  expect(innerSchema(request?.properties?.["state"] ?? {}, reference.schemas)).toBeNull()
})

test("types read in one line", () => {
  expect(typeOf({ type: ["string", "null"] })).toBe("string | null")
  expect(typeOf({ enum: ["a", "b"] })).toBe('"a" | "b"')
  expect(typeOf({ type: "array", items: { $ref: "#/components/schemas/Member" } })).toBe("Member[]")
})
