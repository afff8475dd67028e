import { type Organizations, openOrganizations } from "../store/organization-snapshot.ts"
import { afterAll, beforeAll, expect, test } from "vitest"
import { type Catalog, type Model, createCatalog } from "../base/catalog.ts"
import { systemClock } from "../base/clock.ts"
import { choosingNothing } from "../base/virtual-models.ts"
import { openTestDatabase } from "../../test/database.ts"
import { catalogResolver } from "../../test/in-memory-gateway.ts"
import { insertBillingAccount } from "../store/billing-accounts.ts"
import { insertModelAccess, updateModelAccess } from "../store/model-access.ts"
import { insertOrganization } from "../store/organizations.ts"
import type { Database } from "../store/sql.ts"
import { guardModels } from "./organization-access.ts"
import type { Routed, Router } from "./routing/router.ts"
import { RequestTrace } from "./telemetry.ts"

const now = new Date()
let database: Database
let organizations: Organizations
let catalog: Catalog
let closed = 0

beforeAll(async () => {
  database = await openTestDatabase()
  const times = { createdAt: now, updatedAt: now }
  await insertBillingAccount(database, {
    id: "ba_1",
    email: "a@b.c",
    mode: "prepaid",
    provider: "local",
    ...times,
  })
  await insertOrganization(database, {
    id: "org_1",
    name: "Acme",
    billingAccountId: "ba_1",
    isPersonal: false,
    ...times,
  })
  // The gate reads the name and whether the model is public, nothing else.
  const models = [{ sku: "open", public: true } as Model, { sku: "closed", public: false } as Model] as const
  catalog = createCatalog([...models])
  organizations = await openOrganizations(database, systemClock, 0)
})

afterAll(async () => {
  await organizations.close()
  await database.close()
})

const trace = new RequestTrace(systemClock)

/** A router that lets everything through and counts what is closed again. */
const router: Pick<Router, "open" | "sizeMost"> = {
  sizeMost: () => null,
  open: async () => ({ close: () => void (closed += 1) }) as Routed,
}

async function open(model: string): Promise<string> {
  try {
    await guardModels(router, organizations, catalog).open({
      model,
      organizationId: "org_1",
      hint: null,
      trace,
    })
    return "served"
  } catch (error) {
    return (error as { code?: string }).code ?? "failed"
  }
}

test("a model that is not public is served while it is granted, and only then", async () => {
  const set = async (state: "pending" | "grant" | "deny"): Promise<void> => {
    await updateModelAccess(database, "org_1", "closed", { state, updatedAt: now })
    organizations.invalidate({ table: "model_access", id: "org_1" })
  }
  expect(await open("open")).toBe("served")
  expect(await open("closed")).toBe("model_access_required")
  await insertModelAccess(database, {
    id: "ma_1",
    organizationId: "org_1",
    modelSku: "closed",
    state: "pending",
    createdAt: now,
    updatedAt: now,
  })
  organizations.invalidate({ table: "model_access", id: "org_1" })
  expect(await open("closed")).toBe("model_access_required")
  await set("grant")
  expect(await open("closed")).toBe("served")
  await set("deny")
  expect(await open("closed")).toBe("model_access_required")
})

test("a refused request gives its route back", async () => {
  const before = closed
  expect(await open("closed")).toBe("model_access_required")
  expect(closed).toBe(before + 1)
})

test("a grant made elsewhere is heard of", async () => {
  expect(await open("closed")).toBe("model_access_required")
  await updateModelAccess(database, "org_1", "closed", { state: "grant", updatedAt: now })
  await expect.poll(async () => await open("closed")).toBe("served")
})

const versioned = (sku: string, version: string, enabled = true): Model =>
  ({ sku, version, enabled, kind: "generation", file: "" }) as Model

test("what was taught on another version is answered by that one while it is there, and by the named one else", async () => {
  const own = createCatalog([versioned("new", "2"), versioned("old", "1"), versioned("off", "0", false)])
  const asked = async (...taughtOn: string[]): Promise<string[]> => {
    const named = {
      organizationId: "",
      name: "new",
      wanted: "decisions",
      ...choosingNothing,
      taughtOn,
    } as const
    return (await catalogResolver(own).resolve(named)).stages[0].map(({ sku }) => sku)
  }
  expect(await asked()).toEqual(["new"])
  expect(await asked("1")).toEqual(["old", "new"])
  // Some of it was taught on today's.
  expect(await asked("1", "2")).toEqual(["new"])
  expect(await asked("gone", "1")).toEqual(["old", "new"])
  expect(await asked("gone", "0")).toEqual(["new"])
})
