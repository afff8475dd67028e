/** Lists of which something is known that their types do not say, and work on their items, some at a time. */

/** The element at a place that is within the list. */
export function elementAt<Element>(list: readonly Element[], index: number): Element {
  const element = list[index]
  if (element === undefined) throw new RangeError(`Cannot take element ${index} of ${list.length}`)
  return element
}

export function nonEmpty<Element>([first, ...rest]: readonly Element[]): readonly [Element, ...Element[]] {
  if (first === undefined) throw new RangeError("Cannot use an empty list")
  return [first, ...rest]
}

/** Of an object that has no other fields than its type says. */
export const keysOf = <Key extends string>(fields: Readonly<Record<Key, unknown>>): Key[] =>
  Object.keys(fields) as Key[]

interface MapOptions {
  readonly concurrency: number
  readonly signal?: AbortSignal
}

/**
 * Runs `work` for each item, begun in their order, and returns the results in that order. The first failure, or the signal,
 * aborts the signal that `work` gets; no further item begins, and it is thrown when those that have begun have ended.
 */
export async function mapConcurrent<Item, Result>(
  items: Iterable<Item> | AsyncIterable<Item>,
  { concurrency, signal }: MapOptions,
  work: (item: Item, index: number, signal: AbortSignal) => Promise<Result>,
): Promise<Result[]> {
  const iterator = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]()
  const failed = new AbortController()
  const either = signal ? AbortSignal.any([signal, failed.signal]) : failed.signal
  const results: Result[] = []
  let next = 0
  const run = async (): Promise<void> => {
    while (!either.aborted) {
      const step = await iterator.next()
      if (step.done || either.aborted) return
      const index = next++
      results[index] = await work(step.value, index, either)
    }
  }
  const running = Array.from({ length: concurrency }, async () => {
    await run().catch((error: unknown) => failed.abort(error))
  })
  await Promise.all(running)
  if (either.aborted) await iterator.return?.()
  either.throwIfAborted()
  return results
}
