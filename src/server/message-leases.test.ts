import fc from "fast-check"
import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { ByteBudget } from "./byte-budget.ts"
import { MessageLeases, pieceBytes } from "./message-leases.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const mebibyte = 1024 * 1024

function leasesOf(budget = new ByteBudget(16 * mebibyte), payloadBytesMax = 8 * mebibyte) {
  const tellSlow = vi.fn<() => void>()
  return {
    budget,
    tellSlow,
    leases: new MessageLeases({ payloadBytesMax, tellSlow, lease: () => budget.lease() }),
  }
}

const text = 0x1
const more = 0x0
const close = 0x8
const ping = 0x9

/** The head of a masked frame. */
function headOf(opcode: number, payloadBytes: number, isFinal = true): Buffer {
  const first = (isFinal ? 0x80 : 0) | opcode
  const mask = Buffer.alloc(4)
  if (payloadBytes < 126) return Buffer.concat([Buffer.from([first, 0x80 | payloadBytes]), mask])
  const isShort = payloadBytes < 65_536
  const length = Buffer.alloc(isShort ? 2 : 8)
  if (isShort) length.writeUInt16BE(payloadBytes)
  else length.writeBigUInt64BE(BigInt(payloadBytes))
  return Buffer.concat([Buffer.from([first, 0x80 | (isShort ? 126 : 127)]), length, mask])
}

const frame = (opcode: number, payloadBytes: number, isFinal = true): Buffer =>
  Buffer.concat([headOf(opcode, payloadBytes, isFinal), Buffer.alloc(payloadBytes)])

test.each([0, 1, 125, 126, 65_535, 65_536])(
  "a message of %i bytes is whole with its last byte, and holds its bytes until it is given back",
  (size) => {
    const { budget, leases } = leasesOf()
    const bytes = Buffer.concat([frame(text, size), headOf(text, 1)])
    // The message that follows has come but for its last byte.
    const next = bytes.length - headOf(text, 1).length
    leases.read(bytes.subarray(0, next - 1))
    expect(leases.shift()).toBeUndefined()
    leases.read(bytes.subarray(next - 1))
    expect(budget.heldBytes).toBeGreaterThanOrEqual(bytes.length)
    const whole = leases.shift()
    expect(whole?.fault).toBeNull()
    expect(leases.unfinished?.fault).toBeNull()
    leases.close()
    expect(budget.heldBytes).toBeGreaterThanOrEqual(size)
    whole?.lease.close()
    expect(budget.heldBytes).toBe(0)
  },
)

test("messages are told apart however they are fragmented, interrupted by pings and cut into parts", () => {
  const messages = fc.array(
    fc.array(fc.record({ size: fc.nat(300), pinged: fc.boolean() }), { minLength: 1, maxLength: 4 }),
  )
  fc.assert(
    fc.property(messages, fc.infiniteStream(fc.integer({ min: 1, max: 200 })), (sent, sizes) => {
      const { budget, leases } = leasesOf()
      const frames = sent.flatMap((fragments) =>
        fragments.flatMap(({ size, pinged }, at) => [
          frame(at === 0 ? text : more, size, at === fragments.length - 1),
          ...(pinged ? [frame(ping, 3)] : []),
        ]),
      )
      const bytes = Buffer.concat(frames)
      for (let at = 0; at < bytes.length;) {
        const { value: size } = sizes.next() as { value: number }
        leases.read(bytes.subarray(at, at + size))
        at += size
      }
      expect(leases.unfinished).toBeNull()
      expect(sent.map(() => leases.shift()?.fault)).toEqual(sent.map(() => null))
      expect(leases.shift()).toBeUndefined()
      expect(budget.heldBytes >= sent.flat().reduce((sum, { size }) => sum + size, 0)).toBe(true)
    }),
  )
})

test("a message that is announced to fill the room of its holder has it, and one of a byte more is refused at once", () => {
  const { budget, leases } = leasesOf()
  leases.read(headOf(text, 7 * mebibyte))
  expect(leases.unfinished?.fault).toBeNull()
  leases.close()
  const over = leasesOf(budget)
  over.leases.read(headOf(text, 7 * mebibyte + 1))
  expect(over.leases.unfinished?.fault).toMatchObject({ code: "over_capacity" })
  over.leases.close()
  expect(budget.heldBytes).toBe(0)
})

test("so is a fragment with which a message would become as large", () => {
  const { leases } = leasesOf()
  leases.read(frame(text, 4 * mebibyte, false))
  leases.read(headOf(more, 2 * mebibyte, false))
  expect(leases.unfinished?.fault).toBeNull()
  leases.read(Buffer.alloc(2 * mebibyte))
  leases.read(headOf(more, mebibyte + 1))
  expect(leases.unfinished?.fault).toMatchObject({ code: "over_capacity" })
})

test("fragments of a byte hold what they take as objects", () => {
  const { budget, leases } = leasesOf()
  const count = 1_000
  leases.read(
    Buffer.concat([frame(text, 1, false), ...Array.from({ length: count }, () => frame(more, 1, false))]),
  )
  expect(budget.heldBytes).toBeGreaterThan(count * pieceBytes)
})

test("pings hold nothing", () => {
  const { budget, leases, tellSlow } = leasesOf()
  for (let sent = 0; sent < 100; sent++) leases.read(frame(ping, 125))
  expect(budget.heldBytes).toBe(0)
  vi.advanceTimersByTime(60_000)
  expect(tellSlow).not.toHaveBeenCalled()
})

test("what follows a close, and a message over the limit, is left to the parser", () => {
  const closed = leasesOf()
  closed.leases.read(Buffer.concat([frame(close, 2), frame(text, 100)]))
  expect([closed.budget.heldBytes, closed.leases.shift()]).toEqual([0, undefined])
  const large = leasesOf(new ByteBudget(1024 * mebibyte), 1_000)
  large.leases.read(frame(text, 1_000))
  expect(large.leases.shift()?.fault).toBeNull()
  large.leases.read(frame(text, 1_001))
  expect(large.leases.shift()).toBeUndefined()
  expect(large.leases.unfinished?.fault).toBeNull()
})

test.each([
  ["nothing more", 0, 0, 15_000],
  ["a KiB after 5 s", 5_000, 1024, 16_000],
  ["ten KiB after 5 s", 5_000, 10 * 1024, 20_000],
])(
  "an unfinished message of which %s comes is too slow at the minimum rate, not before",
  (_, afterMs, bytes, atMs) => {
    const { leases, tellSlow } = leasesOf()
    leases.read(headOf(text, 100_000))
    vi.advanceTimersByTime(afterMs)
    if (bytes > 0) leases.read(Buffer.alloc(bytes))
    vi.advanceTimersByTime(atMs - afterMs - 1)
    expect(tellSlow).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(tellSlow).toHaveBeenCalledOnce()
  },
)

test("a message that became whole, and a connection that is closed, are never too slow", () => {
  const { leases, tellSlow } = leasesOf()
  leases.read(headOf(text, 10))
  leases.read(Buffer.alloc(10))
  vi.advanceTimersByTime(60_000)
  leases.read(headOf(text, 10))
  leases.close()
  vi.advanceTimersByTime(60_000)
  expect(tellSlow).not.toHaveBeenCalled()
})
