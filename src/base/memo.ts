/** What is worked out once: a value when it is first asked for, and what becomes of short texts. */

/** What `make` answers; it is called when the value is first asked for, once. */
export function later<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined
  return () => (made ??= { value: make() }).value
}

const TEXTS_MAX = 20_000
/** V8 copies a part of a text that is as short as this; a longer one would keep the whole text in memory. */
const UNITS_MAX = 12

/** Remembers what was worked out of short texts: the words of a question come again with each of its branches. */
export class Memo<Found> {
  readonly #workOut: (text: string) => Found
  readonly #found = new Map<string, Found>()

  constructor(workOut: (text: string) => Found) {
    this.#workOut = workOut
  }

  get(text: string): Found {
    if (text.length > UNITS_MAX) return this.#workOut(text)
    const known = this.#found.get(text)
    if (known !== undefined) return known
    const found = this.#workOut(text)
    if (this.#found.size >= TEXTS_MAX) this.#found.clear()
    this.#found.set(text, found)
    return found
  }
}
