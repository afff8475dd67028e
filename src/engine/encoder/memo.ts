/** Remembers what was worked out of short texts: branches repeat their question's words. */

const TEXTS_MAX = 20_000
/** V8 copies a part of a text that is as short as this; a longer one would keep the whole text in memory. */
const UNITS_MAX = 12

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
