import fc from "fast-check"
import { expect, test } from "vitest"
import { readEvents } from "./remote-generator.ts"

async function read(pieces: readonly Uint8Array[]): Promise<string[]> {
  async function* bytes(): AsyncGenerator<Uint8Array> {
    yield* pieces
  }
  const events: string[] = []
  for await (const event of readEvents(bytes())) events.push(event)
  return events
}

const stream =
  ': comment\n\nevent: x\ndata: {"a":"é€😀"}\n\ndata: one\r\ndata: two\r\n\r\nid: 3\ndata:tight\n\ndata: last'
const expected = ['{"a":"é€😀"}', "one\ntwo", "tight", "last"]

test("events are the same wherever the bytes break", async () => {
  const bytes = Buffer.from(stream)
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), async (sizes) => {
      const pieces: Uint8Array[] = []
      for (let start = 0, turn = 0; start < bytes.length; turn++) {
        const size = sizes[turn % sizes.length] ?? 1
        pieces.push(bytes.subarray(start, start + size))
        start += size
      }
      expect(await read(pieces)).toEqual(expected)
    }),
    { numRuns: 200 },
  )
})

test("a line without an end is refused before it fills the memory", async () => {
  const endless = Array.from({ length: 10 }, () => Buffer.alloc(1024 * 1024, "x"))
  await expect(read(endless)).rejects.toThrow(RangeError)
})
