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

const pageBytesMax = 4 * 1024 * 1024

/** How many of the first to show: as many as have few enough bytes together, and at least one. */
export function countWithinBytes(sizes: readonly number[], bytesMax: number = pageBytesMax): number {
  let bytes = 0
  const over = sizes.findIndex((size, at) => (bytes += size) > bytesMax && at > 0)
  return over < 0 ? sizes.length : over
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
