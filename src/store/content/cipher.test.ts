/** Content is read with its own keys and at its own place, and nowhere else. */
import fc from "fast-check"
import { expect, test } from "vitest"
import { createContentCipher } from "./cipher.ts"

const [old, current] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
const place = { organizationId: "org_1", seqId: "seq_1" }

test("what is sealed is opened, to the character", () => {
  const cipher = createContentCipher([current])
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      expect(cipher.open(place, cipher.seal(place, text))).toBe(Buffer.from(text).toString())
    }),
  )
})

test("a row that is moved to another organization or sequence is not read there", () => {
  const cipher = createContentCipher([current])
  const sealed = cipher.seal(place, "text")
  expect(cipher.open({ ...place, organizationId: "org_2" }, sealed)).toBeNull()
  expect(cipher.open({ ...place, seqId: "seq_2" }, sealed)).toBeNull()
})

test("a changed byte anywhere is noticed", () => {
  const cipher = createContentCipher([current])
  const sealed = cipher.seal(place, "text")
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(cipher.open(place, changed)).toBeNull()
  }
  expect(cipher.open(place, sealed.subarray(0, 10))).toBeNull()
})

test("after a rotation the new key encrypts, both decrypt, and references are found under both", () => {
  const before = createContentCipher([old])
  const after = createContentCipher([current, old])
  expect(after.open(place, before.seal(place, "text"))).toBe("text")
  expect(createContentCipher([old]).open(place, after.seal(place, "text"))).toBeNull()
  const [hash] = before.referenceHashes("org_1", "case 42")
  expect(after.referenceHashes("org_1", "case 42")).toContain(hash)
  expect(after.referenceHashes("org_2", "case 42")).not.toContain(hash)
  expect(createContentCipher([current]).open(place, before.seal(place, "text"))).toBeNull()
})

test("without a key nothing can be kept, and one of the wrong length is refused", () => {
  expect(createContentCipher([]).isAvailable).toBe(false)
  expect(() => createContentCipher([Buffer.alloc(31)])).toThrow(/31 bytes/)
})
