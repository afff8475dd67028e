import { expect, test } from "vitest"
import { hashSecret, newKeyValue, parseBearer, sameHash } from "./principals.ts"

test("a fresh key value names its key and matches its hash", () => {
  const { value, secretHash } = newKeyValue("key_01abc")
  const bearer = parseBearer(value)
  expect(bearer).toMatchObject({ kind: "key", keyId: "key_01abc" })
  expect(bearer?.kind === "key" && sameHash(hashSecret(bearer.secret), secretHash)).toBe(true)
  expect(sameHash(hashSecret("another secret"), hashSecret("a secret"))).toBe(false)
})

test.each([
  "",
  "ump_",
  "ump__0123456789abcdef",
  "ump_id_short",
  "ump_id_0123456789abcde",
  `ump_${"a".repeat(65)}_0123456789abcdef`,
  `ump_id_${"a".repeat(257)}`,
  "ums_short",
  "sk-0123456789abcdef0123456789abcdef",
  "ump_id_0123456789abcd\u0000ef",
])("%j is no bearer value", (value) => {
  expect(parseBearer(value)).toBeNull()
})

test("the shortest and the longest secret are accepted", () => {
  expect(parseBearer("ump_i_0123456789abcdef")).not.toBeNull()
  expect(parseBearer(`ump_${"a".repeat(64)}_${"a".repeat(256)}`)).not.toBeNull()
})
