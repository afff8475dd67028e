/** Ids that sort by time: a prefix that says what it names, 48 bits of milliseconds, 80 random bits, in base 32. */
import { randomBytes } from "node:crypto"
import { type Clock, systemClock } from "./clock.ts"

export const idPrefixes = [
  "org",
  "ba",
  "key",
  "usr",
  "inv",
  "cp",
  "wi",
  "seq",
  "resp",
  "aud",
  "ses",
  "req",
  "iv",
  "chatcmpl",
  "msg",
  "fc",
  "rs",
  "call",
  "gw",
  "adj",
  "ma",
] as const
export type IdPrefix = (typeof idPrefixes)[number]

/** Crockford's alphabet in lower case: no i, l, o, u, and its order is the order of its values. */
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
const codes = Array.from(alphabet, (letter) => letter.charCodeAt(0))
const timeLength = 10
const randomLength = 16

export interface Ids {
  next(prefix: IdPrefix): string
}

/** Makes ids; within one millisecond they still sort in the order they were made. */
export function createIds(
  clock: Clock = systemClock,
  random: (size: number) => Uint8Array = pooledBytes(),
): Ids {
  let lastMs = -1
  let timeText = ""
  const tail = new Uint8Array(randomLength)
  const letters: number[] = Array.from(tail)
  return {
    next(prefix) {
      const nowMs = clock.nowMs()
      if (nowMs > lastMs) {
        lastMs = nowMs
        timeText = encodeTime(nowMs)
        fillTail(tail, random)
      } else countUp(tail)
      for (let at = 0; at < randomLength; at++) letters[at] = codes[tail[at] ?? 0] ?? 0
      return `${prefix}_${timeText}${String.fromCharCode(...letters)}`
    },
  }
}

const poolBytes = 4096

/** Random bytes are asked for in bulk: the call costs more than the bytes. Each is given out once. */
function pooledBytes(): (size: number) => Uint8Array {
  let pool = new Uint8Array()
  return (size) => {
    if (pool.length < size) pool = randomBytes(poolBytes)
    const taken = pool.subarray(0, size)
    pool = pool.subarray(size)
    return taken
  }
}

/** The time inside an id, or null when it is not an id of ours. */
export function timeOfId(id: string): number | null {
  const body = id.slice(id.indexOf("_") + 1)
  if (body.length !== timeLength + randomLength) return null
  let ms = 0
  for (const character of body.slice(0, timeLength)) {
    const digit = alphabet.indexOf(character)
    if (digit < 0) return null
    ms = ms * 32 + digit
  }
  return ms
}

/** A secret of 260 random bits in the same alphabet. */
export function newSecret(random: (size: number) => Uint8Array = randomBytes): string {
  return Array.from(random(52), (byte) => alphabet[byte & 31]).join("")
}

function encodeTime(ms: number): string {
  let rest = ms
  let text = ""
  for (let i = 0; i < timeLength; i++) {
    text = alphabet.charAt(rest % 32) + text
    rest = Math.floor(rest / 32)
  }
  return text
}

function fillTail(tail: Uint8Array, random: (size: number) => Uint8Array): void {
  const bytes = random(randomLength)
  // The first digit starts in the lower half, so that counting up cannot overflow within a millisecond.
  for (let at = 0; at < randomLength; at++) tail[at] = (bytes[at] ?? 0) & (at === 0 ? 15 : 31)
}

function countUp(tail: Uint8Array): void {
  for (let at = randomLength - 1; at >= 0; at--) {
    const digit = tail[at] ?? 0
    tail[at] = digit < 31 ? digit + 1 : 0
    if (digit < 31) return
  }
}
