/** Several streams of events as one, each event with the number of its stream, in the order they come. */

interface Numbered<Event> {
  readonly index: number
  readonly event: Event
}

export async function* merged<Event>(
  streams: readonly AsyncIterable<Event>[],
): AsyncGenerator<Numbered<Event>> {
  const [only, ...others] = streams
  // Most requests want one answer, and there is nothing to wait for beside it.
  if (only && others.length === 0) {
    for await (const event of only) yield { index: 0, event }
    return
  }
  const iterators = streams.map((stream) => stream[Symbol.asyncIterator]())
  type Step = { readonly index: number; readonly result: IteratorResult<Event> }
  const step = async (index: number): Promise<Step> => {
    const iterator = iterators[index]
    if (!iterator) throw new RangeError(`There is no stream ${index}`)
    return { index, result: await iterator.next() }
  }
  const pending = new Map(iterators.map((_, index) => [index, step(index)]))
  try {
    while (pending.size > 0) {
      const { index, result } = await Promise.race(pending.values())
      if (result.done) pending.delete(index)
      else {
        yield { index, event: result.value }
        pending.set(index, step(index))
      }
    }
  } finally {
    // Those still waiting are ended too; what they would have thrown has no reader any more.
    for (const one of pending.values()) one.catch(() => undefined)
    await Promise.allSettled(iterators.map(async (iterator) => await iterator.return?.()))
  }
}
