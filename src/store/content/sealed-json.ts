/**
 * JSON that callers have kept, encrypted: what a response was asked, the items of a conversation. It is written and read as bodies
 * are: in a thread where it is large, and what is put together from several requests holds no more values than one may.
 */
import { checkJsonBounds, JsonError } from "../../base/json.ts"
import { task, threadBytesMin, threads } from "../../base/peer/threads.ts"
import { Fault } from "../../contract/errors.ts"
import { type ContentCipher, type ContentPlace, createContentCipher, openText, sealText } from "./cipher.ts"

interface GivenJson {
  readonly place: ContentPlace
  readonly value: unknown
}

interface SealedJson {
  /** For a column of text. */
  readonly text: string
  /** Of the JSON. */
  readonly characters: number
}

/** `owner` waits where its threads are busy. */
export async function sealJson(
  { keys }: ContentCipher,
  owner: string,
  values: readonly GivenJson[],
): Promise<readonly SealedJson[]> {
  const isLarge = sizeUpTo(values, threadBytesMin) >= threadBytesMin
  return isLarge ? await threads.run(owner, sealTask, { keys, values }) : sealValues({ keys, values })
}

interface StoredJson {
  readonly place: ContentPlace
  readonly text: string
  /** Of an object, where the others are not needed. */
  readonly fields?: readonly string[]
}

/** Undefined where one cannot be decrypted. Throws Fault `context_length_exceeded` where they hold too many values together. */
export async function openJson(
  { keys }: ContentCipher,
  owner: string,
  stored: readonly StoredJson[],
): Promise<readonly unknown[]> {
  const bytes = stored.reduce((sum, { text }) => sum + text.length, 0)
  return bytes >= threadBytesMin
    ? await threads.run(owner, openTask, { keys, stored })
    : openValues({ keys, stored })
}

type Keys = ContentCipher["keys"]

const sealTask = task(import.meta.url, sealValues)
const openTask = task(import.meta.url, openLarge)

export function sealValues({ keys, values }: { keys: Keys; values: readonly GivenJson[] }): SealedJson[] {
  const cipher = createContentCipher(keys)
  return values.map(({ place, value }) => {
    const json = JSON.stringify(value)
    return { text: sealText(cipher, place, json), characters: json.length }
  })
}

interface OpenJob {
  readonly keys: Keys
  readonly stored: readonly StoredJson[]
}

export function openLarge(job: OpenJob): unknown[] {
  const values = openValues(job)
  try {
    checkJsonBounds(Buffer.from(JSON.stringify(values)))
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    throw new Fault("context_length_exceeded", `Cannot use what is stored: together ${error.message}`)
  }
  return values
}

function openValues({ keys, stored }: OpenJob): unknown[] {
  const cipher = createContentCipher(keys)
  return stored.map(({ place, text, fields }) => {
    const json = openText(cipher, place, text)
    if (json === null) return undefined
    const value: unknown = JSON.parse(json)
    return fields ? pick(value, fields) : value
  })
}

function pick(value: unknown, fields: readonly string[]): unknown {
  // Those who ask for fields have stored an object.
  const object = value as Readonly<Record<string, unknown>>
  return Object.fromEntries(fields.map((name) => [name, object[name]]))
}

/** About how many characters it has as JSON; counted no further than the most. */
function sizeUpTo(value: unknown, most: number): number {
  if (typeof value === "string") return value.length
  if (typeof value !== "object" || value === null) return 1
  let size = 2
  for (const [key, member] of Object.entries(value)) {
    if (size >= most) break
    size += key.length + 1 + sizeUpTo(member, most - size)
  }
  return size
}
