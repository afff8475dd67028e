import { expect, test } from "vitest"
import type { PageRequest } from "../store/pages.ts"
import { excerptOf, search, searchLimits } from "./search.ts"

const signal = new AbortController().signal

/** Rows named by numbers from `count` down to 1, of which every `each`th is found. */
function numbered({ count, each, characters }: { count: number; each: number; characters: number }) {
  let read = 0
  const searched = {
    stepRows: 100,
    signal,
    cursorOf: (n: number) => String(n),
    read: ({ cursor, limit }: PageRequest) => {
      const first = cursor ? Number(cursor) - 1 : count
      const items = Array.from({ length: Math.min(limit, first) }, (_, at) => first - at)
      const last = items.at(-1)
      return Promise.resolve({ items, nextCursor: last !== undefined && last > 1 ? String(last) : null })
    },
    match: (n: number) => {
      read += 1
      return { found: n % each === 0 ? n : null, characters }
    },
  }
  return { searched, read: () => read }
}

test("a page ends with the row that fills it, and the next one goes on after it", async () => {
  const { searched } = numbered({ count: 1000, each: 10, characters: 1 })
  const first = await search({ limit: 2 }, searched)
  expect(first).toEqual({ items: [1000, 990], nextCursor: "990" })
  expect(await search({ limit: 2, cursor: first.nextCursor }, searched)).toEqual({
    items: [980, 970],
    nextCursor: "970",
  })
})

test("everything is found once, and the last page says that it is the last", async () => {
  const { searched } = numbered({ count: 5000, each: 7, characters: 1 })
  const found: number[] = []
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<typeof search<number, number>>> = await search(
      { limit: 50, cursor },
      searched,
    )
    found.push(...page.items)
    cursor = page.nextCursor
  } while (cursor !== null)
  expect(found).toEqual(Array.from({ length: 714 }, (_, at) => 4998 - at * 7))
})

test("one request reads so many rows and no more, and may find nothing in them", async () => {
  const { searched, read } = numbered({ count: 10_000, each: 100_000, characters: 1 })
  const cursor = String(10_000 - searchLimits.rowsMax + 1)
  expect(await search({ limit: 2 }, searched)).toEqual({ items: [], nextCursor: cursor })
  expect(read()).toBe(searchLimits.rowsMax)
})

test("one request reads so many characters, and the text that goes over them to its end", async () => {
  const { searched, read } = numbered({
    count: 10_000,
    each: 100_000,
    characters: searchLimits.charactersMax / 4 + 1,
  })
  expect(await search({ limit: 2 }, searched)).toEqual({ items: [], nextCursor: "9997" })
  expect(read()).toBe(4)
})

test("a caller who has left is not searched for", async () => {
  const { searched } = numbered({ count: 10, each: 1, characters: 1 })
  await expect(search({ limit: 2 }, { ...searched, signal: AbortSignal.abort() })).rejects.toThrow()
})

test("an excerpt has what is around the words, whatever their case, and no half of a character", () => {
  expect(excerptOf("Where is my Parcel?", "parcel")).toBe("Where is my Parcel?")
  expect(excerptOf("Where is my parcel?", "letter")).toBeNull()
  const excerpt = excerptOf(`${"\u{1F600}".repeat(100)}late${"\u{1F600}".repeat(100)}`, "late") ?? ""
  expect(excerpt).toMatch(/^\u2026\u{1F600}+late\u{1F600}+\u2026$/u)
  expect(excerpt.length).toBeLessThan(250)
})
