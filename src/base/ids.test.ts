import { expect, test } from "vitest"
import { ManualClock } from "../../test/manual-clock.ts"
import { createIds, newSecret, timeOfId } from "./ids.ts"

test("ids sort in the order they were made, within one millisecond and across a clock that steps back", () => {
  const clock = new ManualClock(1_800_000_000_000)
  const ids = createIds(clock)
  const made = Array.from({ length: 2000 }, (_, i) => {
    if (i === 500) clock.advance(1)
    if (i === 1000) clock.advance(-5000)
    return ids.next("seq")
  })
  expect(made).toEqual([...made].toSorted())
  expect(new Set(made).size).toBe(made.length)
})

test("a clock that stands still for more ids than a millisecond has still gives each once, in order", () => {
  const ids = createIds(new ManualClock(1_800_000_000_000))
  let last = ids.next("seq")
  const times = new Set([timeOfId(last)])
  for (let made = 0; made < 1_200_000; made++) {
    const next = ids.next("seq")
    if (next <= last || next.length !== last.length) throw new Error(`${next} came after ${last}`)
    times.add(timeOfId(next))
    last = next
  }
  expect(times.size).toBeGreaterThan(1)
  expect(times.size).toBeLessThan(5)
})

test("an id holds the time it was made", () => {
  const ids = createIds(new ManualClock(1_800_000_000_123))
  expect(timeOfId(ids.next("org"))).toBe(1_800_000_000_123)
  expect(timeOfId("org_nonsense")).toBeNull()
})

test("secrets are long and never repeat", () => {
  const made = Array.from({ length: 100 }, () => newSecret())
  expect(new Set(made).size).toBe(100)
  for (const secret of made) expect(secret).toMatch(/^[0-9a-hjkmnp-tv-z]{52}$/)
})
