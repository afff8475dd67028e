import fc from "fast-check"
import { expect, test } from "vitest"
import { ManualClock } from "../../../test/manual-clock.ts"
import { type SlotRequest, type Slot, SlotQueue, largeTokensMin } from "./queue.ts"

const never = new AbortController().signal
const small = (organizationId: string, tokens = 10): SlotRequest => ({ organizationId, tokens })
const large = (organizationId: string): SlotRequest => ({ organizationId, tokens: largeTokensMin })
const ready = (tokens: number, organizationId = "a"): SlotRequest => ({
  organizationId,
  tokens,
  isReady: true,
})
const newQueue = (slotsMax: number, waitingMax: number): SlotQueue =>
  new SlotQueue(new ManualClock(0), { slotsMax, waitingMax })

/** Whether a promise has settled by the time that everything due now has run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false
  const note = (): void => void (settled = true)
  promise.then(note, note)
  await new Promise((resolve) => setImmediate(resolve))
  return settled
}

test("a request beyond the places waits, and the first in line takes the place that is given back", async () => {
  const queue = newQueue(2, 4)
  const held = [await queue.acquire(small("a"), never), await queue.acquire(small("b"), never)]
  const next = queue.acquire(small("c"), never)
  const last = queue.acquire(small("d"), never)
  expect(await isSettled(next)).toBe(false)
  held[0]?.release()
  expect(await isSettled(next)).toBe(true)
  expect(await isSettled(last)).toBe(false)
})

test("the queue takes as many as it may and refuses the next with a time to come back", async () => {
  const queue = newQueue(1, 2)
  await queue.acquire(small("a"), never)
  const waiting = [queue.acquire(small("b"), never), queue.acquire(small("c"), never)]
  await expect(queue.acquire(small("d"), never)).rejects.toMatchObject({
    code: "overloaded",
    retryAfterMs: expect.any(Number),
  })
  expect(await isSettled(Promise.any(waiting))).toBe(false)
  expect(queue.waiting).toBe(2)
})

test("one organization cannot take the last place or the whole queue", async () => {
  const queue = newQueue(4, 4)
  for (let i = 0; i < 3; i++) await queue.acquire(small("greedy"), never)
  const fourth = queue.acquire(small("greedy"), never)
  expect(await isSettled(fourth)).toBe(false)
  expect(await isSettled(queue.acquire(small("modest"), never))).toBe(true)
  const more = [queue.acquire(small("greedy"), never), queue.acquire(small("greedy"), never)]
  await expect(queue.acquire(small("greedy"), never)).rejects.toMatchObject({ code: "overloaded" })
  expect(await isSettled(Promise.any(more))).toBe(false)
  const modest = queue.acquire(small("modest"), never)
  expect(await isSettled(modest)).toBe(false)
  expect(queue.waiting).toBe(4)
})

test("large requests whose work is all there run one after the other, and beside generations and small ones", async () => {
  const queue = newQueue(8, 8)
  const first = await queue.acquire(ready(65_536 - largeTokensMin), never)
  const second = await queue.acquire(ready(largeTokensMin), never)
  const third = queue.acquire(ready(largeTokensMin), never)
  expect(await isSettled(third)).toBe(false)
  expect(await isSettled(queue.acquire(large("b"), never))).toBe(true)
  expect(await isSettled(queue.acquire(small("a"), never))).toBe(true)
  second.release()
  expect(await isSettled(third)).toBe(true)
  first.release()
})

test("a request that is larger than all that may run together runs alone", async () => {
  const queue = newQueue(8, 8)
  const held = await queue.acquire(ready(1_000_000), never)
  const next = queue.acquire(ready(1_000_000, "b"), never)
  expect(await isSettled(next)).toBe(false)
  held.release()
  expect(await isSettled(next)).toBe(true)
})

test("large requests leave places to small ones", async () => {
  const queue = newQueue(4, 8)
  await queue.acquire(large("a"), never)
  await queue.acquire(large("b"), never)
  const third = queue.acquire(large("c"), never)
  expect(await isSettled(third)).toBe(false)
  expect(await isSettled(queue.acquire(small("d"), never))).toBe(true)
})

test("a place goes to the organization that has the fewest, whoever came first", async () => {
  const queue = newQueue(4, 8)
  const held: Slot[] = []
  for (let i = 0; i < 3; i++) held.push(await queue.acquire(small("busy"), never))
  held.push(await queue.acquire(small("other"), never))
  const busy = queue.acquire(small("busy"), never)
  const idle = queue.acquire(small("idle"), never)
  held[0]?.release()
  expect(await isSettled(idle)).toBe(true)
  expect(await isSettled(busy)).toBe(false)
})

test("who leaves the queue gives up the place in it and nothing else", async () => {
  const queue = newQueue(1, 2)
  const held = await queue.acquire(small("a"), never)
  const tired = new AbortController()
  const waiting = queue.acquire(small("b"), tired.signal)
  const next = queue.acquire(small("c"), never)
  tired.abort(new Error("gone"))
  await expect(waiting).rejects.toThrow("gone")
  expect(queue.outstandingTokens).toBe(20)
  held.release()
  expect(await isSettled(next)).toBe(true)
})

test("outstanding tokens follow what a request turns out to need", async () => {
  const queue = newQueue(1, 1)
  const slot = await queue.acquire(small("a", 10), never)
  slot.resize(400)
  expect(queue.outstandingTokens).toBe(400)
  slot.release()
  slot.release()
  expect([queue.outstandingTokens, queue.running]).toEqual([0, 0])
})

test("the time to come back follows how long places are held, within its bounds", async () => {
  const clock = new ManualClock(0)
  const queue = new SlotQueue(clock, { slotsMax: 1, waitingMax: 1 })
  expect(queue.retryAfterMs()).toBe(1000)
  const slot = await queue.acquire(small("a"), never)
  clock.advance(5000)
  slot.release()
  expect(queue.retryAfterMs()).toBe(5000)
  const slow = await queue.acquire(small("a"), never)
  clock.advance(10_000_000)
  slow.release()
  expect(queue.retryAfterMs()).toBe(30_000)
})

test("in any order of coming, leaving and finishing no bound is passed, nobody is lost and all is given back", async () => {
  const move = fc.oneof(
    fc.record({ organizationId: fc.constantFrom("a", "b", "c"), tokens: fc.constantFrom(5, largeTokensMin) }),
    fc.record({ finish: fc.nat(20) }),
    fc.record({ leave: fc.nat(20) }),
  )
  const sizes = fc.record({
    slotsMax: fc.integer({ min: 1, max: 5 }),
    waitingMax: fc.integer({ min: 1, max: 5 }),
  })
  await fc.assert(
    fc.asyncProperty(sizes, fc.array(move, { maxLength: 60 }), async ({ slotsMax, waitingMax }, moves) => {
      const queue = newQueue(slotsMax, waitingMax)
      const held: Slot[] = []
      const leavers: AbortController[] = []
      let open = 0
      for (const step of moves) {
        if ("finish" in step) held.splice(step.finish % Math.max(1, held.length), 1)[0]?.release()
        else if ("leave" in step) leavers[step.leave % Math.max(1, leavers.length)]?.abort(new Error("left"))
        else {
          const leaver = new AbortController()
          leavers.push(leaver)
          open++
          const settle = (): void => void open--
          queue.acquire(step, leaver.signal).then((slot) => {
            held.push(slot)
            settle()
          }, settle)
        }
        await Promise.resolve()
        expect(queue.running).toBeLessThanOrEqual(slotsMax)
        expect(queue.waiting).toBeLessThanOrEqual(waitingMax)
      }
      for (let rounds = 0; rounds < moves.length + 1; rounds++) {
        await new Promise((resolve) => setImmediate(resolve))
        for (const slot of held.splice(0)) slot.release()
      }
      expect({
        open,
        running: queue.running,
        waiting: queue.waiting,
        tokens: queue.outstandingTokens,
      }).toEqual({
        open: 0,
        running: 0,
        waiting: 0,
        tokens: 0,
      })
    }),
    { numRuns: 60 },
  )
})
