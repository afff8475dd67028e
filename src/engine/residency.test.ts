/** Which models stay in memory, with engines that only count. */
import { expect, test } from "vitest"
import { ManualClock } from "../base/clock.ts"
import { silentLog } from "../base/log.ts"
import { Residency } from "./residency.ts"
import type { Resident } from "./resident.ts"

class CountingEngine {
  readonly model: string
  isOpen = true
  uses = 0

  constructor(model: string) {
    this.model = model
  }

  async close(): Promise<void> {
    if (this.uses > 0) throw new Error(`${this.model} was closed while it was used`)
    await Promise.resolve()
    this.isOpen = false
  }
}

/** Each model takes one byte. */
function machine(memoryBytesMax: number | null, idleMsMax: number | null = null, roomWaitMsMax = 60_000) {
  const clock = new ManualClock(1_000)
  const residency = new Residency({ memoryBytesMax, idleMsMax, roomWaitMsMax, clock, log: silentLog })
  const inMemory = new Set<string>()
  const most = { value: 0 }
  const failing = new Set<string>()
  const add = (model: string): Resident<CountingEngine> =>
    residency.add({
      model,
      purpose: "decisions",
      estimate: async () => 1,
      load: async () => {
        if (failing.has(model)) throw new Error(`${model} is broken`)
        inMemory.add(model)
        most.value = Math.max(most.value, inMemory.size)
        const engine = new CountingEngine(model)
        const close = engine.close.bind(engine)
        engine.close = async () => {
          await close()
          inMemory.delete(model)
        }
        return engine
      },
    })
  const touch = async (resident: Resident<CountingEngine>): Promise<void> => {
    clock.advance(1)
    ;(await resident.use()).release()
  }
  return { residency, clock, inMemory, most, failing, add, touch }
}

test("the least recently used model leaves for another, and comes back when it is used", async () => {
  const { residency, inMemory, add, touch } = machine(3)
  const [a, b, c, d] = ["a", "b", "c", "d"].map(add) as [never, never, never, never]
  for (const resident of [a, b, c]) await touch(resident)
  await touch(a)
  await touch(d)
  expect([...inMemory].toSorted()).toEqual(["a", "c", "d"])
  await touch(b)
  expect([...inMemory].toSorted()).toEqual(["a", "b", "d"])
  expect(residency.report().map(({ model, state, loads }) => [model, state, loads])).toEqual([
    ["a", "loaded", 1],
    ["b", "loaded", 2],
    ["c", "unloaded", 1],
    ["d", "loaded", 1],
  ])
  await residency.close()
  expect(inMemory.size).toBe(0)
})

test("a model in use finishes what it has before it leaves, and those who come meanwhile wait for it", async () => {
  const { residency, inMemory, add } = machine(1)
  const [a, b] = [add("a"), add("b")]
  const first = await a.use()
  const other = b.use()
  // The load of b waits for a.
  await expect.poll(() => residency.report()[0]?.state).toBe("unloading")
  const again = a.use()
  expect(first.engine.isOpen).toBe(true)
  first.release()
  const use = await other
  expect([first.engine.isOpen, [...inMemory]]).toEqual([false, ["b"]])
  use.release()
  use.release()
  const back = await again
  expect([back.engine.isOpen, [...inMemory]]).toEqual([true, ["a"]])
  back.release()
  await residency.close()
})

test("where nothing leaves in time the request is refused as overload, and what was in use goes on", async () => {
  const { residency, add } = machine(1, null, 1)
  const [a, b] = [add("a"), add("b")]
  const use = await a.use()
  await expect(b.use()).rejects.toMatchObject({ code: "overloaded" })
  const more = await a.use()
  expect(more.engine).toBe(use.engine)
  for (const one of [use, more]) one.release()
  ;(await b.use()).release()
  await residency.close()
})

test("a model that is idle for long leaves, one that is used does not, and one larger than the budget is loaded alone", async () => {
  const { residency, clock, inMemory, add, touch } = machine(null, 60_000)
  const [a, b] = [add("a"), add("b")]
  await touch(a)
  const use = await b.use()
  clock.advance(60_000)
  await residency.sweep()
  expect([...inMemory]).toEqual(["b"])
  use.release()
  await residency.close()

  const small = machine(0)
  await small.touch(small.add("huge"))
  expect([...small.inMemory]).toEqual(["huge"])
  await small.residency.close()
})

test("a model that is leaving is waited for by the one that needs its room", async () => {
  const { residency, clock, inMemory, add } = machine(1, 60_000)
  const [a, b] = [add("a"), add("b")]
  const use = await a.use()
  use.release()
  const { engine } = use
  const closing = Promise.withResolvers<void>()
  const close = engine.close.bind(engine)
  engine.close = async () => {
    await closing.promise
    await close()
  }
  clock.advance(60_000)
  const swept = residency.sweep()
  await expect.poll(() => residency.report()[0]?.state).toBe("unloading")
  const other = b.use()
  await expect.poll(() => residency.report()[1]?.state).toBe("loading")
  closing.resolve()
  ;(await other).release()
  await swept
  expect([...inMemory]).toEqual(["b"])
  await residency.close()
})

test("a model that cannot be loaded says why to all who wait, and is tried again; one who leaves is not waited for", async () => {
  const { residency, failing, inMemory, add, touch } = machine(1)
  const a = add("a")
  failing.add("a")
  const outcomes = await Promise.allSettled([a.use(), a.use()])
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"])
  failing.clear()
  await touch(a)
  const b = add("b")
  const held = await a.use()
  const leave = new AbortController()
  const waiting = b.use(leave.signal)
  leave.abort(new Error("gone"))
  await expect(waiting).rejects.toThrow("gone")
  held.release()
  await touch(a)
  expect([...inMemory]).toEqual(["a"])
  await residency.close()
})

test("fifty models of which three fit: however they are used, at most three are in memory, and none is closed in use", async () => {
  const { residency, inMemory, most, add } = machine(3)
  const residents = Array.from({ length: 50 }, (_, index) => add(`m${index}`))
  let seed = 1
  const random = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % below
  }
  const client = async (): Promise<void> => {
    for (let count = 0; count < 100; count++) {
      const use = await residents[random(residents.length)]?.use()
      if (!use) throw new Error("there is no such model")
      expect(use.engine.isOpen).toBe(true)
      use.engine.uses++
      for (let turns = random(4); turns > 0; turns--) await Promise.resolve()
      use.engine.uses--
      use.release()
    }
  }
  await Promise.all(Array.from({ length: 8 }, client))
  expect(most.value).toBe(3)
  expect(residency.report().every(({ in_use }) => in_use === 0)).toBe(true)
  await residency.close()
  expect(inMemory.size).toBe(0)
})
