/**
 * Words, characters and fields of a text as hashed features, in any script: what the vector of a network does not know, such as
 * names of tiers and product codes, or another language.
 */

/** Each kind is weighed by itself. Characters serve scripts without spaces, spellings and endings. */
export type FeatureKind = "word" | "character" | "field"

export const featureKinds: readonly FeatureKind[] = ["word", "character", "field"]

/** How often each feature occurs, by its hash. */
export type FeatureCounts = Readonly<Record<FeatureKind, ReadonlyMap<number, number>>>

/** Longer texts are read up to here: 2 to 3 ms, on the thread that answers requests too. */
const CHARACTERS_MAX = 8_000
const GRAM_MIN = 2
const GRAM_MAX = 4
const FIELDS_MAX = 64
/** Of fields whose pairs are features too. */
const PAIRED_MAX = 12
const DEPTH_MAX = 8
const NAME_MAX = 64
const VALUE_MAX = 64
const PAIRED_VALUE_MAX = 24
/** Words of one script; runs of a script without spaces count as one and are read by their characters. */
const WORDS = /[\p{L}\p{M}\p{N}_]+/gu
const FIELD_LINE = /^[ \t]*([\p{L}\p{N}][\p{L}\p{N} _-]{0,31})[ \t]*[:=][ \t]*(\S.{0,63})$/gmu

export function featuresOf(text: string): FeatureCounts {
  const read = readable(text)
  const words = read.match(WORDS) ?? []
  return { word: countWords(words), character: countCharacters(words), field: countFields(read) }
}

const readable = (text: string): string => text.slice(0, CHARACTERS_MAX).normalize("NFKC").toLowerCase()

/** Read when it is first asked for, once for all questions about the text. */
export function featuresLater(text: string): () => FeatureCounts {
  let read: FeatureCounts | undefined
  return () => (read ??= featuresOf(text))
}

function countWords(words: readonly string[]): Map<number, number> {
  const counts = new Map<number, number>()
  let before = START
  for (const word of words) {
    const own = hashText(START, word)
    count(counts, own)
    if (before !== START) count(counts, hashText(step(before, SEPARATOR), word))
    before = own
  }
  return counts
}

/** With the borders of their word, so that beginnings and ends differ from middles. */
function countCharacters(words: readonly string[]): Map<number, number> {
  const counts = new Map<number, number>()
  for (const word of words) {
    const framed = ` ${word} `
    for (let start = 0; start + GRAM_MIN <= framed.length; start++) {
      let hash = START
      for (let size = 1; size <= GRAM_MAX && start + size <= framed.length; size++) {
        hash = step(hash, framed.charCodeAt(start + size - 1))
        if (size >= GRAM_MIN) count(counts, hash)
      }
    }
  }
  return counts
}

function countFields(text: string): Map<number, number> {
  const counts = new Map<number, number>()
  for (const { feature } of fieldFeatures(text)) count(counts, feature)
  return counts
}

/** For each feature of the text's fields, the hash of its name, or of its two names: what it is a value of. */
export const fieldNames = (text: string): Map<number, number> =>
  new Map(fieldFeatures(readable(text)).map(({ feature, name }) => [feature, name]))

/** Each field with its value, and pairs of short ones: a rule is often about two of them together. */
function fieldFeatures(text: string): { readonly feature: number; readonly name: number }[] {
  const features: { feature: number; name: number }[] = []
  const paired: { field: string; name: string }[] = []
  for (const { name: whole, value } of jsonFields(text) ?? lineFields(text)) {
    const name = whole.slice(-NAME_MAX)
    const field = `${name}=${value.slice(0, VALUE_MAX)}`
    features.push({ feature: hashText(START, field), name: hashText(START, name) })
    if (value.length > PAIRED_VALUE_MAX || paired.length >= PAIRED_MAX) continue
    for (const other of paired)
      features.push({
        feature: hashText(step(hashText(START, other.field), SEPARATOR), field),
        name: hashText(step(hashText(START, other.name), SEPARATOR), name),
      })
    paired.push({ field, name })
  }
  return features
}

interface Field {
  readonly name: string
  readonly value: string
}

/** Null for a text that is no JSON object or array. */
function jsonFields(text: string): Field[] | null {
  if (!/^\s*[[{]/.test(text)) return null
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  const fields: Field[] = []
  addFields(value, "", 0, fields)
  return fields
}

function addFields(value: unknown, name: string, depth: number, into: Field[]): void {
  if (into.length >= FIELDS_MAX || depth > DEPTH_MAX) return
  if (typeof value !== "object" || value === null) {
    into.push({ name, value: String(value) })
    return
  }
  // Places in a list are not names: its values are those of the list.
  for (const [key, own] of Object.entries(value))
    addFields(own, Array.isArray(value) ? name : `${name}.${key}`, depth + 1, into)
}

const lineFields = (text: string): Field[] =>
  [...text.matchAll(FIELD_LINE)]
    .slice(0, FIELDS_MAX)
    .map(([, name = "", value = ""]) => ({ name: name.trim(), value: value.trim() }))

function count(counts: Map<number, number>, feature: number): void {
  counts.set(feature, (counts.get(feature) ?? 0) + 1)
}

/** FNV-1a over UTF-16 code units. */
const START = 0x811c9dc5
const PRIME = 0x01000193
const SEPARATOR = 0x1f

const step = (hash: number, unit: number): number => Math.imul(hash ^ unit, PRIME) >>> 0

function hashText(start: number, text: string): number {
  let hash = start
  for (let at = 0; at < text.length; at++) hash = step(hash, text.charCodeAt(at))
  return hash
}
