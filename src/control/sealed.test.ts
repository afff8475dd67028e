import { randomBytes } from "node:crypto"
import { expect, test } from "vitest"
import { seal, sealKeyBytes, unseal } from "./single-sign-on.ts"

const key = randomBytes(sealKeyBytes)
const value = { state: "a", nonce: "b" }

test("a sealed value comes back as it was", () => {
  expect(unseal(key, seal(key, value))).toEqual(value)
})

test("a sealed value that was changed anywhere does not come back", () => {
  const sealed = Buffer.from(seal(key, value), "base64url")
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(unseal(key, changed.toString("base64url"))).toBeNull()
  }
})

test("a value sealed by another installation does not come back", () => {
  expect(unseal(key, seal(randomBytes(sealKeyBytes), value))).toBeNull()
  expect(unseal(key, "")).toBeNull()
})
