import { afterEach, expect, test } from "vitest"
import { systemClock } from "../base/clock.ts"
import { silentLog } from "../base/log.ts"
import { type WorkKind, WorkQueue } from "./work-queue.ts"

interface Item {
  readonly owner: string
  readonly number: number
}

let queue: WorkQueue<Item> | null = null
afterEach(async () => await queue?.close())

/** Work that lies in memory; each item runs until it is told to end, or its gateway stops. */
function start(items: Item[], changes: Partial<WorkKind<Item>> = {}) {
  const seen = { begun: [] as string[], givenBack: [] as string[], lost: [] as string[] }
  const ends = new Map<string, () => void>()
  const nameOf = ({ owner, number }: Item): string => `${owner}${number}`
  queue = new WorkQueue<Item>(
    { clock: systemClock, log: silentLog },
    {
      name: "items",
      table: "deliveries",
      parallelMax: 3,
      perOwnerMax: 2,
      listOwners: async () => items.map(({ owner }) => owner),
      claim: async (owner) => {
        const at = items.findIndex((item) => item.owner === owner)
        return at < 0 ? null : (items.splice(at, 1)[0] ?? null)
      },
      run: async (item, { halt, lost }) => {
        const { promise, resolve, reject } = Promise.withResolvers<void>()
        seen.begun.push(nameOf(item))
        ends.set(nameOf(item), resolve)
        lost.addEventListener("abort", () => seen.lost.push(nameOf(item)))
        halt.addEventListener("abort", () => reject(halt.reason as Error))
        await promise
      },
      giveBack: async (item) => void seen.givenBack.push(nameOf(item)),
      ...changes,
    },
  )
  return { seen, queue, end: (name: string) => ends.get(name)?.() }
}

const itemsOf = (owner: string, count: number): Item[] =>
  Array.from({ length: count }, (_, at) => ({ owner, number: at + 1 }))

const soon = { interval: 5 }

test("an owner whose work does not end keeps no other waiting, and owners take turns", async () => {
  const items = itemsOf("a", 10)
  const { seen, queue: started, end } = start(items)
  await expect.poll(() => seen.begun, soon).toEqual(["a1", "a2"])
  items.push(...itemsOf("b", 2), ...itemsOf("c", 1))
  started.wake()
  await expect.poll(() => seen.begun, soon).toEqual(["a1", "a2", "b1"])
  end("b1")
  await expect.poll(() => seen.begun, soon).toEqual(["a1", "a2", "b1", "c1"])
  end("c1")
  await expect.poll(() => seen.begun, soon).toEqual(["a1", "a2", "b1", "c1", "b2"])
})

test("a stop gives back what was begun", async () => {
  const { seen, queue: started } = start([...itemsOf("a", 1), ...itemsOf("b", 1)])
  await expect.poll(() => seen.begun.length, soon).toBe(2)
  await started.close()
  expect(seen).toEqual({ begun: ["a1", "b1"], givenBack: ["a1", "b1"], lost: [] })
})

test("work that is cancelled ends at the change, and is not given back", async () => {
  const cancelled = new Set<string>()
  const { seen, queue: started } = start([...itemsOf("a", 1), ...itemsOf("b", 1)], {
    renew: async ({ owner }) => !cancelled.has(owner),
  })
  await expect.poll(() => seen.begun.length, soon).toBe(2)
  cancelled.add("a")
  started.invalidate({ table: "deliveries", id: "" })
  await expect.poll(() => seen.lost, soon).toEqual(["a1"])
  await started.close()
  expect(seen.givenBack).toEqual(["b1"])
})

test("a store that is away is asked again", async () => {
  let asked = 0
  const items = itemsOf("a", 1)
  const { seen, queue: started } = start(items, {
    listOwners: async () => {
      if (asked++ === 0) throw new Error("the store is away")
      return items.map(({ owner }) => owner)
    },
  })
  await expect.poll(() => asked, soon).toBeGreaterThan(0)
  started.wake()
  await expect.poll(() => seen.begun, soon).toEqual(["a1"])
})
