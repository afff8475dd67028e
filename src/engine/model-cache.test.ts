/** Which models stay in memory, with engines that only count. */
import { expect, test } from "vitest"
import { ManualClock } from "../../test/manual-clock.ts"
import { silentLog } from "../base/log.ts"
import type { CachedModel } from "./cached-model.ts"
import { ModelCache } from "./model-cache.ts"

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
  const cache = new ModelCache({ memoryBytesMax, idleMsMax, roomWaitMsMax, clock, log: silentLog })
  const inMemory = new Set<string>()
  const most = { value: 0 }
  const failing = new Set<string>()
  const add = (model: string): CachedModel<CountingEngine> =>
    cache.add({
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
  const touch = async (cached: CachedModel<CountingEngine>): Promise<void> => {
    clock.advance(1)
    ;(await cached.acquire()).release()
  }
  return { cache, clock, inMemory, most, failing, add, touch }
}

test("the least recently used model leaves for another, and comes back when it is used", async () => {
  const { cache, inMemory, add, touch } = machine(3)
  const [a, b, c, d] = ["a", "b", "c", "d"].map(add) as [never, never, never, never]
  for (const cached of [a, b, c]) await touch(cached)
  await touch(a)
  await touch(d)
  expect([...inMemory].toSorted()).toEqual(["a", "c", "d"])
  await touch(b)
  expect([...inMemory].toSorted()).toEqual(["a", "b", "d"])
  expect(cache.report().map(({ model, state, loads }) => [model, state, loads])).toEqual([
    ["a", "loaded", 1],
    ["b", "loaded", 2],
    ["c", "unloaded", 1],
    ["d", "loaded", 1],
  ])
  await cache.close()
  expect(inMemory.size).toBe(0)
})

test("a model in use finishes what it has before it leaves, and those who come meanwhile wait for it", async () => {
  const { cache, inMemory, add } = machine(1)
  const [a, b] = [add("a"), add("b")]
  const first = await a.acquire()
  const other = b.acquire()
  // The load of b waits for a.
  await expect.poll(() => cache.report()[0]?.state).toBe("unloading")
  const again = a.acquire()
  expect(first.engine.isOpen).toBe(true)
  first.release()
  const lease = await other
  expect([first.engine.isOpen, [...inMemory]]).toEqual([false, ["b"]])
  lease.release()
  lease.release()
  const back = await again
  expect([back.engine.isOpen, [...inMemory]]).toEqual([true, ["a"]])
  back.release()
  await cache.close()
})

test("where nothing leaves in time the request is refused as overload, and what was in use goes on", async () => {
  const { cache, add } = machine(1, null, 1)
  const [a, b] = [add("a"), add("b")]
  const lease = await a.acquire()
  await expect(b.acquire()).rejects.toMatchObject({ code: "overloaded" })
  const more = await a.acquire()
  expect(more.engine).toBe(lease.engine)
  for (const one of [lease, more]) one.release()
  ;(await b.acquire()).release()
  await cache.close()
})

test("a model that is idle for long leaves, one that is used does not, and one larger than the budget is loaded alone", async () => {
  const { cache, clock, inMemory, add, touch } = machine(null, 60_000)
  const [a, b] = [add("a"), add("b")]
  await touch(a)
  const lease = await b.acquire()
  clock.advance(60_000)
  await cache.sweep()
  expect([...inMemory]).toEqual(["b"])
  lease.release()
  await cache.close()

  const small = machine(0)
  await small.touch(small.add("huge"))
  expect([...small.inMemory]).toEqual(["huge"])
  await small.cache.close()
})

test("a model that is leaving is waited for by the one that needs its room", async () => {
  const { cache, clock, inMemory, add } = machine(1, 60_000)
  const [a, b] = [add("a"), add("b")]
  const lease = await a.acquire()
  lease.release()
  const { engine } = lease
  const closing = Promise.withResolvers<void>()
  const close = engine.close.bind(engine)
  engine.close = async () => {
    await closing.promise
    await close()
  }
  clock.advance(60_000)
  const swept = cache.sweep()
  await expect.poll(() => cache.report()[0]?.state).toBe("unloading")
  const other = b.acquire()
  await expect.poll(() => cache.report()[1]?.state).toBe("loading")
  closing.resolve()
  ;(await other).release()
  await swept
  expect([...inMemory]).toEqual(["b"])
  await cache.close()
})

test("a model that cannot be loaded says why to all who wait, and is tried again; one who leaves is not waited for", async () => {
  const { cache, failing, inMemory, add, touch } = machine(1)
  const a = add("a")
  failing.add("a")
  const outcomes = await Promise.allSettled([a.acquire(), a.acquire()])
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"])
  failing.clear()
  await touch(a)
  const b = add("b")
  const held = await a.acquire()
  const leave = new AbortController()
  const waiting = b.acquire(leave.signal)
  leave.abort(new Error("gone"))
  await expect(waiting).rejects.toThrow("gone")
  held.release()
  await touch(a)
  expect([...inMemory]).toEqual(["a"])
  await cache.close()
})

test("fifty models of which three fit: however they are used, at most three are in memory, and none is closed in use", async () => {
  const { cache, inMemory, most, add } = machine(3)
  const models = Array.from({ length: 50 }, (_, index) => add(`m${index}`))
  let seed = 1
  const random = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % below
  }
  const client = async (): Promise<void> => {
    for (let count = 0; count < 100; count++) {
      const lease = await models[random(models.length)]?.acquire()
      if (!lease) throw new Error("there is no such model")
      expect(lease.engine.isOpen).toBe(true)
      lease.engine.uses++
      for (let turns = random(4); turns > 0; turns--) await Promise.resolve()
      lease.engine.uses--
      lease.release()
    }
  }
  await Promise.all(Array.from({ length: 8 }, client))
  expect(most.value).toBe(3)
  expect(cache.report().every(({ in_use }) => in_use === 0)).toBe(true)
  await cache.close()
  expect(inMemory.size).toBe(0)
})
