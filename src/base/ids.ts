/** Ids that sort by time: a prefix that says what it names, 48 bits of milliseconds, 80 random bits, in base 32. */
import { createHash, randomBytes } from "node:crypto"
import { type Clock, systemClock } from "./clock.ts"

const idPrefixes = [
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
  "modr",
  "rerank",
  "msg",
  "fc",
  "fco",
  "ctc",
  "ctco",
  "cmp",
  "conv",
  "tsc",
  "sh",
  "lsh",
  "apc",
  "rs",
  "call",
  "toolu",
  "gw",
  "adj",
  "ma",
  "qs",
  "ex",
  "case",
  "job",
  "wh",
  "evt",
  "dlv",
  "ar",
  "rev",
  "gr",
  "vm",
  "cm",
  "file",
  "batch",
  "pk",
] as const
type IdPrefix = (typeof idPrefixes)[number]

/** Crockford's alphabet in lower case: no i, l, o, u, and its order is the order of its values. */
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
const timeLength = 10
const randomLength = 16
/** Two digits at a time, which are 10 bits. */
const pairs = Array.from(
  { length: 1024 },
  (_, bits) => alphabet.charAt(bits >> 5) + alphabet.charAt(bits & 31),
)
const pairMask = 1023
/** The last two pairs count up from where chance began, to here. */
const countMax = (1 << 20) - 1
const headPairs = randomLength / 2 - 2

export interface Ids {
  next(prefix: IdPrefix): string
}

/** Makes ids; within one millisecond they still sort in the order they were made. */
export function createIds(
  clock: Clock = systemClock,
  random: (size: number) => Uint8Array = pooledBytes(),
): Ids {
  let lastMs = -1
  let head = ""
  let count = 0
  return {
    next(prefix) {
      const nowMs = clock.nowMs()
      if (nowMs > lastMs || count === countMax) {
        // Ids stay monotonic when the clock is set back: the last millisecond is kept until its ids are used up.
        lastMs = Math.max(nowMs, lastMs + 1)
        const bytes = random(randomLength)
        head = encodeTime(lastMs)
        for (let pair = 0; pair < headPairs; pair++) head += pairs[bitsAt(bytes, pair)] ?? ""
        // It starts in the lower half, so that a millisecond has enough of them.
        count = ((bitsAt(bytes, headPairs) << 10) | bitsAt(bytes, headPairs + 1)) & (countMax >> 1)
      } else count++
      return `${prefix}_${head}${pairs[count >> 10] ?? ""}${pairs[count & pairMask] ?? ""}`
    },
  }
}

/** The same id for the same key and time: it sorts by time as all others do. */
export function derivedId(prefix: string, ms: number, key: string): string {
  const hash = createHash("sha256").update(key).digest()
  let tail = ""
  for (let pair = 0; pair < randomLength / 2; pair++) tail += pairs[bitsAt(hash, pair)] ?? ""
  return `${prefix}_${encodeTime(ms)}${tail}`
}

/** 10 of the 16 bits of a pair of bytes. */
const bitsAt = (bytes: Uint8Array, pair: number): number =>
  (((bytes[2 * pair] ?? 0) << 8) | (bytes[2 * pair + 1] ?? 0)) & pairMask

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
  // In halves of 30 and 20 bits: dividing integers is quicker than dividing doubles.
  const high = Math.floor(ms / 2 ** 30)
  const low = ms % 2 ** 30
  return (
    `${pairs[high >> 10] ?? ""}${pairs[high & pairMask] ?? ""}` +
    `${pairs[low >> 20] ?? ""}${pairs[(low >> 10) & pairMask] ?? ""}${pairs[low & pairMask] ?? ""}`
  )
}
