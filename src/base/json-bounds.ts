/** Bounds the shape of a JSON text before anything is built from it: how deep it nests and how many values it holds. */
import { noteReadSize } from "../contract/read-size.ts"
import { JsonError } from "./json.ts"

export interface JsonBounds {
  readonly depthMax: number
  /** Objects and lists. */
  readonly containersMax: number
  /** Of lists and objects, after the first of each. */
  readonly valuesMax: number
}

export const standardBounds: JsonBounds = {
  // A request nests its own parts a few deep; the rest is for the JSON schemas of tools and formats.
  depthMax: 256,
  // A conversation of 2048 messages with parts and calls stays far below.
  containersMax: 65_536,
  // A list of texts that is refused later takes the main thread 0.5 us for each.
  valuesMax: 131_072,
}

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** One pass over the bytes; what is not JSON is left to the parser. Throws JsonError. */
export function checkJsonBounds(
  bytes: Uint8Array,
  { depthMax, containersMax, valuesMax }: JsonBounds = standardBounds,
): void {
  noteReadSize(bytes.byteLength)
  let depth = 0
  let containers = 0
  let values = 0
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = endOfString(bytes, at)
        break
      case OPEN_LIST:
      case OPEN_OBJECT:
        depth++
        containers++
        if (depth > depthMax) throw tooLarge(`nests more than ${depthMax} deep`)
        if (containers > containersMax) throw tooLarge(`holds more than ${containersMax} objects and lists`)
        break
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        depth--
        break
      case COMMA:
        values++
        if (values > valuesMax) throw tooLarge(`holds more than ${valuesMax} values`)
        break
      default:
    }
  }
}

function endOfString(bytes: Uint8Array, start: number): number {
  let at = bytes.indexOf(QUOTE, start + 1)
  while (at > 0 && isEscaped(bytes, at)) at = bytes.indexOf(QUOTE, at + 1)
  return at < 0 ? bytes.length : at
}

/** A quote is escaped by an odd number of backslashes before it. */
function isEscaped(bytes: Uint8Array, quote: number): boolean {
  let backslashes = 0
  while (bytes[quote - 1 - backslashes] === BACKSLASH) backslashes++
  return backslashes % 2 === 1
}

const tooLarge = (found: string): JsonError => new JsonError(`its JSON ${found}`)
