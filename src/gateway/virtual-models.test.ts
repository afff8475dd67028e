import { openOrganizations, type Organizations, virtualModels } from "../store/organization-snapshot.ts"
import { afterAll, beforeAll, expect, test } from "vitest"
import { insertAccount } from "../../test/account.ts"
import { openTestDatabase } from "../../test/database.ts"
import { type Model, createCatalog } from "../base/catalog.ts"
import { systemClock } from "../base/clock.ts"
import { createIds } from "../base/ids.ts"
import { choosingNothing } from "../base/virtual-models.ts"
import type { VirtualRule } from "../contract/platform/virtual-models.ts"
import type { Database } from "../store/sql.ts"
import { type ModelResolver, createModelResolver } from "./organization-access.ts"

const model = (sku: string, changes: Partial<Model> = {}): Model =>
  ({ sku, kind: "generation", file: "", enabled: true, ...changes }) as Model
const catalog = createCatalog(
  [model("a"), model("b"), model("off", { enabled: false }), model("encoder", { file: "e.onnx" })],
  [],
  [{ name: "everyones", description: "", enabled: true, rule: { alias: "a" } }],
)

const eventually = { timeout: 60_000 }

let database: Database
let organizations: Organizations
let models: ModelResolver
let organizationId: string

beforeAll(async () => {
  database = await openTestDatabase()
  organizations = await openOrganizations(database, systemClock, 0)
  models = createModelResolver(organizations, catalog)
  organizationId = (await insertAccount(database, createIds(), new Date())).organizationId
})

afterAll(async () => {
  await organizations.close()
  await database.close()
})

const skus = async (name: string, wanted: "decisions" | "generation" = "decisions") => {
  const { stages } = await models.resolve({ organizationId, name, wanted, ...choosingNothing })
  return stages.map((stage) => stage.map(({ sku }) => sku))
}

async function save(name: string, rule: VirtualRule): Promise<void> {
  const now = new Date()
  const row = { id: createIds().next("vm"), organizationId, createdAt: now, updatedAt: now }
  await virtualModels.insert(database, row, { name, description: "", rule })
}

test("what another gateway saved is found as soon as the database has told of it", async () => {
  await expect(skus("mine")).rejects.toMatchObject({ code: "unknown_model" })
  await save("mine", { fallback: ["a", "b"] })
  await expect.poll(async () => await skus("mine").catch(() => null), eventually).toEqual([["a", "b"]])
  await database.query("UPDATE virtual_models SET rule = $1", ['{"alias":"b"}'])
  await expect.poll(async () => await skus("mine"), eventually).toEqual([["b"]])
})

test("a model that is a package to install is refused with the command", async () => {
  await expect(skus("umpire-decide-multilingual")).rejects.toThrow(
    'no model "umpire-decide-multilingual" is in the catalog; npm install umpire-decide-multilingual where umpire is installed adds it',
  )
})

test("a plain name and the configuration's are found without an organization", async () => {
  const named = { organizationId: "", wanted: "generation", ...choosingNothing } as const
  expect(await models.resolve({ ...named, name: "a" })).toMatchObject({ virtual: null })
  expect(await models.resolve({ ...named, name: "everyones" })).toMatchObject({ virtual: "everyones" })
})

test("a member that left the catalog, or cannot do what is wanted, is an error that names it", async () => {
  await save("broken", { fallback: ["a", "gone"] })
  await save("mixed", { fallback: ["encoder", "a"] })
  await save("partly-off", { fallback: ["off", "a"] })
  await save("all-off", { alias: "off" })
  const refused = async (name: string, wanted?: "generation") => await skus(name, wanted).then(String, String)
  await expect.poll(() => refused("all-off"), eventually).toContain("the model off is switched off")
  expect(await refused("broken")).toContain("broken names gone, which is not in the catalog")
  expect(await refused("mixed", "generation")).toContain("mixed is a virtual model for decisions")
  expect(await skus("partly-off")).toEqual([["a"]])
})
