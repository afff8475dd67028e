import fc from "fast-check"
import { afterAll, expect, test } from "vitest"
import { threads } from "../base/peer/threads.ts"
import { BodyPieces } from "./body.ts"

afterAll(async () => await threads.close())

const { signal } = new AbortController()
const joined = async (pieces: BodyPieces): Promise<Buffer> => Buffer.from(await pieces.join("org", signal))

test("however a body comes in pieces, it is the same", async () => {
  const sizes = fc.array(fc.oneof(fc.nat(4), fc.integer({ min: 1000, max: 1050 }), fc.nat(40_000)), {
    maxLength: 60,
  })
  await fc.assert(
    fc.asyncProperty(sizes, async (lengths) => {
      const chunks = lengths.map((length, at) => Buffer.alloc(length, at + 1))
      const whole = Buffer.concat(chunks)
      const pieces = new BodyPieces()
      for (const chunk of chunks) pieces.add(chunk)
      expect((await joined(pieces)).equals(whole)).toBe(true)
    }),
  )
})

test("a million pieces of one byte take few Buffers", async () => {
  const pieces = new BodyPieces()
  for (let sent = 0; sent < 1_000_000; sent++) pieces.add(Buffer.from([sent % 251]))
  expect(pieces.count).toBeLessThanOrEqual(Math.ceil(1_000_000 / (16 * 1024)))
  const body = await joined(pieces)
  expect(body).toHaveLength(1_000_000)
  expect(body[999_999]).toBe(999_999 % 251)
})

test("of a body that is given up nothing is left, and nothing is made of it", async () => {
  const pieces = new BodyPieces()
  for (let sent = 0; sent < 40; sent++) pieces.add(Buffer.alloc(64 * 1024, 1))
  pieces.clear()
  expect(await joined(pieces)).toHaveLength(0)
})

test("a body of one large piece is not copied", async () => {
  const chunk = Buffer.alloc(1024, 1)
  const pieces = new BodyPieces()
  pieces.add(chunk)
  expect(await pieces.join("org", signal)).toBe(chunk)
})

test("small pieces between large ones keep their order", async () => {
  const pieces = new BodyPieces()
  for (const size of [1, 2000, 1, 2000, 1]) pieces.add(Buffer.alloc(size, size === 1 ? "a" : "b"))
  // The last is not yet among them.
  expect(pieces.count).toBe(4)
  expect((await joined(pieces)).toString()).toBe(`a${"b".repeat(2000)}a${"b".repeat(2000)}a`)
})

test("what was joined is freed, but for what shares its memory with others", async () => {
  const [own, other] = [Buffer.alloc(10_000, "a"), Buffer.alloc(10_000, "b")]
  const part = Buffer.alloc(20_000, "c").subarray(0, 10_000)
  const pieces = new BodyPieces()
  for (const piece of [own, part, other]) pieces.add(piece)
  expect(await joined(pieces)).toHaveLength(30_000)
  expect(pieces.count).toBe(0)
  expect([own, part, other].map(({ length }) => length)).toEqual([0, 10_000, 0])
})

test.each([
  ["one byte below a mebibyte, here", 1024 * 1024 - 1],
  ["a mebibyte, in a thread", 1024 * 1024],
  ["32 MiB, in a thread", 32 * 1024 * 1024],
])("what shares its memory and what does not are joined: %s", async (_, size) => {
  const whole = Buffer.alloc(size, "umpire")
  const pieces = new BodyPieces()
  const own: Uint8Array[] = []
  for (let at = 0; at < size; at += 64 * 1024) {
    const part = whole.subarray(at, at + 64 * 1024)
    // A first piece comes with the head of its request.
    const piece = at === 0 ? part : Buffer.from(Uint8Array.from(part).buffer)
    if (at > 0) own.push(piece)
    pieces.add(piece)
  }
  expect((await joined(pieces)).equals(whole)).toBe(true)
  expect(own.every(({ length }) => length === 0)).toBe(true)
})
