import { expect, test } from "vitest"
import { NewProvider } from "../../../src/contract/identity.ts"
import { draftOf, emptyDraft, splitPem, toProvider } from "./provider-draft.ts"

const pem = (body: string): string => `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----`

test("certificates of one file are told apart", () => {
  expect(splitPem(`# root\n${pem("aa")}\n\n${pem("bb")}\n`)).toEqual([pem("aa"), pem("bb")])
  expect(splitPem(" ")).toEqual([])
})

test("a filled form is a provider that the contract accepts", () => {
  const draft = {
    ...emptyDraft(),
    name: "ci",
    issuer: "https://issuer.example",
    audiences: "a, b,",
    condition: " ",
  }
  const provider = toProvider(draft)
  expect(NewProvider.safeParse(provider).error).toBeUndefined()
  expect(provider).toMatchObject({
    attribute_condition: null,
    config: { allowed_audiences: ["a", "b"], jwks: null },
    authorization_rules: [{ condition: "true", permissions: [] }],
  })
})

test("a provider that is opened and saved is unchanged", () => {
  const config = { type: "x509", trust_anchors: [pem("aa")], intermediate_cas: [pem("bb")] } as const
  const provider = toProvider({ ...emptyDraft(), name: "mesh" })
  const times = { created_at: "2026-01-01T00:00:00Z", updated_at: "2026-01-01T00:00:00Z" }
  const stored = {
    ...provider,
    config: { ...config, trust_anchors: [pem("aa")], intermediate_cas: [pem("bb")] },
    attribute_transformations: { team: "assertion.sub" },
    id: "wi_1",
    organization_id: "org_1",
    policy_revision: 1,
    ...times,
  }
  expect(toProvider(draftOf(stored))).toEqual({
    ...provider,
    config,
    attribute_transformations: { team: "assertion.sub" },
  })
})

test("a key set that is not JSON is refused with a sentence", () => {
  expect(() => toProvider({ ...emptyDraft(), jwks: "{" })).toThrow("not JSON")
})
