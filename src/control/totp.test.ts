import { expect, test } from "vitest"
import { base32, codeAt, matchingStep, otpauthUri, stepAt } from "./totp.ts"

const secret = Buffer.from("12345678901234567890")

test.each([
  [59, "94287082"],
  [1111111109, "07081804"],
  [1111111111, "14050471"],
  [1234567890, "89005924"],
  [2000000000, "69279037"],
  [20000000000, "65353130"],
])("the code at %i s is that of RFC 6238, appendix B", (seconds, code) => {
  expect(codeAt(secret, stepAt(seconds * 1000), 8)).toBe(code)
  expect(matchingStep(secret, code.slice(-6), seconds * 1000)).toBe(stepAt(seconds * 1000))
})

test("a code holds for the step before and after its own, and no longer", () => {
  const nowMs = 1_234_567_890_000
  const at = (steps: number): number | null =>
    matchingStep(secret, codeAt(secret, stepAt(nowMs) + steps), nowMs)
  expect([-2, -1, 0, 1, 2].map(at)).toEqual([null, ...[-1, 0, 1].map((by) => stepAt(nowMs) + by), null])
  for (const code of ["", "1", "1234567", "abcdef", "\u{1F600}12"])
    expect(matchingStep(secret, code, nowMs)).toBeNull()
})

test.each([
  ["", ""],
  ["f", "MY"],
  ["fo", "MZXQ"],
  ["foo", "MZXW6"],
  ["foob", "MZXW6YQ"],
  ["fooba", "MZXW6YTB"],
  ["foobar", "MZXW6YTBOI"],
])("base32 of %j is that of RFC 4648", (text, encoded) => expect(base32(Buffer.from(text))).toBe(encoded))

test("the address for apps names issuer and account, whatever stands in them", () => {
  const uri = new URL(otpauthUri(secret, { issuer: "Umpire & co", account: "ada+1@example.com" }))
  expect(decodeURIComponent(uri.pathname)).toContain("Umpire & co:ada+1@example.com")
  expect(Object.fromEntries(uri.searchParams)).toEqual({
    secret: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
    issuer: "Umpire & co",
  })
})
