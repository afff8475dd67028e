/** A list with one entry in another place. */
export function moved<Item>(list: readonly Item[], from: number, to: number): Item[] {
  const rest = list.toSpliced(from, 1)
  const item = list[from]
  return item === undefined || to < 0 || to >= list.length ? [...list] : rest.toSpliced(to, 0, item)
}
