/** Finds the end of a JSON object that arrives in pieces. */

export class JsonObjectScan {
  #depth = 0
  #inString = false
  #escaped = false

  /** The index just after the object's closing brace in this piece, or null when the object goes on. */
  scan(piece: string): number | null {
    for (let index = 0; index < piece.length; index++) {
      const character = piece.charAt(index)
      if (this.#inString) this.#inside(character)
      else if (character === '"') this.#inString = true
      else if (character === "{" || character === "[") this.#depth++
      else if ((character === "}" || character === "]") && --this.#depth === 0) return index + 1
    }
    return null
  }

  #inside(character: string): void {
    if (this.#escaped) this.#escaped = false
    else if (character === "\\") this.#escaped = true
    else if (character === '"') this.#inString = false
  }
}
