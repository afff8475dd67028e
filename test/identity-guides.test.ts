/** The guides of docs/identity.md: each provider is accepted as it stands, and grants what the page says to the claims on it. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { NewProvider } from "../src/contract/identity.ts"
import { createCelPool } from "../src/control/identity/cel-pool.ts"
import { policyOf } from "../src/control/identity/validation.ts"

const page = readFileSync(join(import.meta.dirname, "..", "docs", "identity.md"), "utf8")
const guides = [
  ...page.matchAll(/### (.+)\n[^#]*?```json\n([^`]+)```\n```json grants="([^"]*)"\n([^`]+)```/g),
].map(([, platform = "", provider = "", granted = "", claims = ""]) => ({
  platform,
  provider,
  granted,
  claims,
}))

const cel = createCelPool()
afterAll(async () => await cel.close())

test("every platform has its guide", () => {
  expect(guides.map(({ platform }) => platform)).toEqual([
    "GitHub Actions",
    "GitLab CI",
    "Kubernetes service accounts",
    "SPIFFE",
    "AWS",
    "Google Cloud",
    "Azure",
  ])
})

test.each(guides)("$platform", async ({ provider, granted, claims }) => {
  const given = NewProvider.parse(JSON.parse(provider))
  const policy = policyOf({
    attributeCondition: given.attribute_condition,
    attributeTransformations: given.attribute_transformations,
    authorizationRules: given.authorization_rules,
  })
  expect(await cel.check("guide", policy)).toEqual([])
  const outcome = await cel.run("guide", policy, JSON.parse(claims) as Record<string, unknown>)
  expect(outcome).toMatchObject({ matched: expect.any(Number) })
  const rule = given.authorization_rules["matched" in outcome ? outcome.matched : -1]
  expect(rule?.permissions.join(" ")).toBe(granted)
  // The same claims of somebody else are not let in.
  const other = await cel.run("guide", policy, strangerOf(JSON.parse(claims) as Record<string, unknown>))
  expect("refusedBy" in other || given.authorization_rules[other.matched]?.permissions.length === 0).toBe(
    true,
  )
})

/** Every text replaced, at every depth. */
function strangerOf<Value>(value: Value): Value {
  if (typeof value === "string") return `other-${value}` as Value
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(strangerOf) as Value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, strangerOf(member)])) as Value
}
