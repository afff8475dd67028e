/** Work that waits to be admitted elsewhere than where it was begun: its size goes up, and the admission comes down. */

export class PendingAdmission<Size, Admission> {
  readonly #size = Promise.withResolvers<Size>()
  readonly #admission = Promise.withResolvers<Admission>()

  constructor() {
    // One that nothing waits for is refused too.
    this.#admission.promise.catch(() => undefined)
  }

  /** Of the work's call. What was granted holds for work that is begun anew. */
  readonly admit = async (size: Size): Promise<Admission> => {
    this.#size.resolve(size)
    return await this.#admission.promise
  }

  /** Rejects with the failure of work that ends before it asks. */
  async size(work: Promise<unknown>): Promise<Size> {
    const unasked = work.then(() => {
      throw new Error("Cannot run the work: the engine did not say its size")
    })
    return await Promise.race([this.#size.promise, unasked])
  }

  grant(admission: Admission): void {
    this.#admission.resolve(admission)
  }

  /** After a grant it does nothing. */
  refuse(reason: unknown = new Error("The work was not admitted")): void {
    this.#admission.reject(reason)
  }
}

/** For work that costs nothing, or was reserved before. */
export const admitAny = async (): Promise<void> => await Promise.resolve()

/** The size of work, of which nothing is evaluated. */
export async function measure<Size>(
  run: (admit: (size: Size) => Promise<never>) => Promise<unknown>,
): Promise<Size> {
  const admission = new PendingAdmission<Size, never>()
  const work = run(admission.admit)
  try {
    return await admission.size(work)
  } finally {
    admission.refuse()
    // It has ended when its size is told, so that what it held is free.
    await work.catch(() => undefined)
  }
}

interface Begun<Event> {
  readonly first: Promise<IteratorResult<Event, unknown>>
  /** All of them, the first too. */
  readonly events: AsyncIterableIterator<Event>
}

/** Asks for the first event before anything reads them: a generation admits on its way there. */
export function begin<Event>(source: AsyncIterable<Event>): Begun<Event> {
  const events = source[Symbol.asyncIterator]()
  const first = events.next()
  // Read or not, its failure is handled.
  first.catch(() => undefined)
  let unread: typeof first | null = first
  return {
    first,
    events: {
      next: async () => {
        const step = unread ?? events.next()
        unread = null
        return await step
      },
      return: async () => (await events.return?.()) ?? { done: true, value: undefined },
      [Symbol.asyncIterator]() {
        return this
      },
    },
  }
}
