/** Tags: the caller's own `key=value` on a request, so that requests and their cost can be attributed. */
import { z } from "zod"
import { Fault } from "./errors.ts"

/** Names the tags of a request: `team=ops,job=42`. */
export const tagsHeader = "x-umpire-tags"

export const tagLimits = { tagsMax: 16, keyCharactersMax: 64, valueCharactersMax: 128 } as const

export const tagKeyForm = /^[A-Za-z0-9_.-]{1,64}$/

/** `key`, `key=value`, or `key=` for requests without the tag. */
const tagFilterForm = /^[A-Za-z0-9_.-]{1,64}(=.*)?$/su

export const isTagFilter = (text: string): boolean => tagFilterForm.test(text)

export const TagFilter = z
  .string()
  .regex(tagFilterForm, {
    error: `a tag is key or key=value; a key has 1 to ${tagLimits.keyCharactersMax} of A-Z a-z 0-9 _ . -`,
  })
  .max(1024)

/** Reads the tags of a request: from its header, and from what the inference APIs have for the same purpose. */
export type Tags = Readonly<Record<string, string>>

const { tagsMax, keyCharactersMax, valueCharactersMax } = tagLimits
// oxlint-disable-next-line no-control-regex -- these are the characters to refuse
const controlCharacters = /[\u0000-\u001f\u007f]/g

/** Throws Fault `invalid_header` that names the rule which the header breaks. */
export function readTags(header: string): Tags {
  if (header.trim() === "") return {}
  const tags = new Map<string, string>()
  for (const pair of header.split(",")) {
    const [key, value] = readPair(pair.trim())
    if (tags.has(key)) throw refused(`the key ${key} is given twice`)
    tags.set(key, value)
  }
  if (tags.size > tagsMax) throw refused(`a request has at most ${tagsMax} tags`)
  return Object.fromEntries(tags)
}

function readPair(pair: string): [string, string] {
  const at = pair.indexOf("=")
  if (at < 0) throw refused("a tag is key=value, and a comma stands between tags")
  const key = pair.slice(0, at).trimEnd()
  if (!tagKeyForm.test(key)) throw refused(`a key has 1 to ${keyCharactersMax} of A-Z a-z 0-9 _ . -`)
  const value = decode(pair.slice(at + 1).trimStart())
  const { length } = Array.from(value)
  if (length < 1 || length > valueCharactersMax || value.search(controlCharacters) >= 0)
    throw refused(`the value of ${key} must have 1 to ${valueCharactersMax} characters, none of them control`)
  return [key, value]
}

function decode(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    throw refused("a value is UTF-8 text, percent-encoded where needed")
  }
}

const refused = (rule: string): Fault =>
  new Fault("invalid_header", `Cannot read ${tagsHeader}: ${rule}`, { param: tagsHeader })

/** Every request names a model; those without the other two have no tags. */
interface TaggedBody {
  readonly model?: unknown
  readonly user?: unknown
  readonly metadata?: unknown
}

/** `user` and `metadata` of the inference APIs, cut to what tags may be: they have rules of their own. */
export function bodyTags(body: TaggedBody): Tags {
  const given = Object.entries({ ...Object(body.metadata), ...(body.user ? { user: body.user } : {}) })
  return Object.fromEntries(
    given.flatMap(([name, text]) => {
      const key = name.replaceAll(/[^A-Za-z0-9_.-]/g, "_").slice(0, keyCharactersMax)
      const value = typeof text === "string" ? cutValue(text) : ""
      return key === "" || value === "" ? [] : [[key, value]]
    }),
  )
}

const cutValue = (text: string): string =>
  Array.from(text.slice(0, 2 * valueCharactersMax).replaceAll(controlCharacters, " "))
    .slice(0, valueCharactersMax)
    .join("")

/** The first wins where both have a key; what is too much is left out. */
export function mergeTags(first: Tags, second: Tags): Tags {
  const more = Object.entries(second).filter(([key]) => !Object.hasOwn(first, key))
  return Object.fromEntries([...Object.entries(first), ...more].slice(0, tagsMax))
}
