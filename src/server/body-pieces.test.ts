import fc from "fast-check"
import { expect, test } from "vitest"
import { BodyPieces } from "./body-pieces.ts"

test("however a body comes in pieces, it is the same", () => {
  const sizes = fc.array(fc.oneof(fc.nat(4), fc.integer({ min: 1000, max: 1050 }), fc.nat(40_000)), {
    maxLength: 60,
  })
  fc.assert(
    fc.property(sizes, (lengths) => {
      const chunks = lengths.map((length, at) => Buffer.alloc(length, at + 1))
      const pieces = new BodyPieces()
      for (const chunk of chunks) pieces.add(chunk)
      expect(pieces.join().equals(Buffer.concat(chunks))).toBe(true)
    }),
  )
})

test("a million pieces of one byte take few Buffers", () => {
  const pieces = new BodyPieces()
  for (let sent = 0; sent < 1_000_000; sent++) pieces.add(Buffer.from([sent % 251]))
  expect(pieces.count).toBeLessThanOrEqual(Math.ceil(1_000_000 / (16 * 1024)))
  const body = pieces.join()
  expect(body).toHaveLength(1_000_000)
  expect(body[999_999]).toBe(999_999 % 251)
})

test("a body of one large piece is not copied", () => {
  const chunk = Buffer.alloc(1024, 1)
  const pieces = new BodyPieces()
  pieces.add(chunk)
  expect(pieces.join()).toBe(chunk)
})

test("small pieces between large ones keep their order", () => {
  const pieces = new BodyPieces()
  const large = Buffer.alloc(2000, "b")
  for (const chunk of [Buffer.from("a"), large, Buffer.from("c"), large, Buffer.from("d")]) pieces.add(chunk)
  expect(pieces.join().toString()).toBe(`a${"b".repeat(2000)}c${"b".repeat(2000)}d`)
  expect(pieces.count).toBe(5)
})
