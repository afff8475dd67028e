import { expect, test, vi } from "vitest"
import { ManualClock } from "../../test/manual-clock.ts"
import { StoreUnavailable } from "./sql.ts"
import { FreshCache } from "./fresh-cache.ts"

const freshMs = 1000
const staleMs = 5000

function cacheOver(load: (key: string) => Promise<string | null>, entriesMax = 10) {
  const clock = new ManualClock(0)
  return { clock, cache: new FreshCache({ clock, freshMs, staleMs, entriesMax }, load) }
}

test("an entry is read again once it is no longer fresh", async () => {
  let reads = 0
  const { clock, cache } = cacheOver(async () => `read ${++reads}`)
  expect(await cache.get("a")).toBe("read 1")
  clock.advance(freshMs - 1)
  expect(await cache.get("a")).toBe("read 1")
  clock.advance(1)
  expect(await cache.get("a")).toBe("read 2")
})

test("a stale entry serves while the store is away, and not for longer than allowed", async () => {
  let away = false
  const { clock, cache } = cacheOver(async () => {
    if (away) throw new StoreUnavailable("away")
    return "value"
  })
  await cache.get("a")
  away = true
  clock.advance(staleMs - 1)
  expect(await cache.get("a")).toBe("value")
  clock.advance(1)
  await expect(cache.get("a")).rejects.toThrow(StoreUnavailable)
})

test("a failure that is not an absent store is never papered over", async () => {
  let broken = false
  const { clock, cache } = cacheOver(async () => {
    if (broken) throw new Error("broken")
    return "value"
  })
  await cache.get("a")
  broken = true
  clock.advance(freshMs)
  await expect(cache.get("a")).rejects.toThrow("broken")
})

test("a value read before a change is not kept after it, and not given to those who ask after it", async () => {
  const pending: ((value: string) => void)[] = []
  const { cache } = cacheOver(() => new Promise((resolve) => pending.push(resolve)))
  const before = cache.get("a")
  cache.invalidate("a")
  const after = cache.get("a")
  pending[0]?.("old")
  pending[1]?.("new")
  expect(await before).toBe("old")
  expect(await after).toBe("new")
  expect(await cache.get("a")).toBe("new")
})

test("those who ask at once share one read", async () => {
  let reads = 0
  const { cache } = cacheOver(async () => `read ${++reads}`)
  expect(await Promise.all([cache.get("a"), cache.get("a")])).toEqual(["read 1", "read 1"])
})

test("the oldest entry makes room at the bound", async () => {
  const reads: string[] = []
  const { cache } = cacheOver(async (key) => {
    reads.push(key)
    return key
  }, 2)
  for (const key of ["a", "b", "c", "b", "a"]) await cache.get(key)
  expect(reads).toEqual(["a", "b", "c", "a"])
})

test("absence is not remembered", async () => {
  let value: string | null = null
  const { cache } = cacheOver(async () => value)
  expect(await cache.get("a")).toBeNull()
  value = "made since"
  expect(await cache.get("a")).toBe("made since")
})

test("a store that keeps silent does not hold up a request that the cache can serve", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  try {
    const clock = new ManualClock(0)
    let isSilent = false
    const cache = new FreshCache({ clock, freshMs: 10, staleMs: 100, entriesMax: 10 }, async () =>
      isSilent ? await new Promise<string>(() => undefined) : "known",
    )
    await cache.get("key")
    isSilent = true
    clock.advance(11)
    const answer = cache.get("key")
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await answer).toBe("known")
  } finally {
    vi.useRealTimers()
  }
})
