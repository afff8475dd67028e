/** Lists by pages: a page says where the next one begins. */
export interface PageRequest {
  readonly limit: number
  /** What the page before gave as its nextCursor. */
  readonly cursor?: string | null | undefined
}

export interface Page<Item> {
  readonly items: Item[]
  readonly nextCursor: string | null
}

/** For statements that ask for one row more than the page shows: that row says that there is a next page. */
export function toPage<Item>(
  items: readonly Item[],
  limit: number,
  cursorOf: (item: Item) => string,
): Page<Item> {
  const shown = items.slice(0, limit)
  const last = shown.at(-1)
  return { items: shown, nextCursor: items.length > limit && last !== undefined ? cursorOf(last) : null }
}
