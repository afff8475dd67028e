/** The formats of JSON Schema as patterns: for each, texts that every checker accepts, which are not all that it allows. */
import type { Automaton } from "./automaton.ts"
import { Budget } from "./budget.ts"
import { patternOf } from "./pattern.ts"

/** Every month has a 28th. */
const date = "[12]\\d{3}-(0[1-9]|1[0-2])-(0[1-9]|1\\d|2[0-8])"
const time = "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-](0\\d|1[0-2]):[0-5]\\d)"
const label = "[a-zA-Z0-9]{1,20}(-[a-zA-Z0-9]{1,12})?"
const host = `${label}(\\.${label}){0,4}`
const name = `${label}(\\.${label}){0,3}\\.[a-z]{2,6}`
const octet = "(\\d|[1-9]\\d|1\\d\\d|2[0-4]\\d|25[0-5])"
const group = "[0-9a-f]{1,4}"
const segment = "[a-zA-Z0-9._~-]*"
const uri = `[a-z][a-z0-9+.-]{1,15}://${host}(:[1-9]\\d{1,3})?(/${segment})*(\\?[a-zA-Z0-9=&._~-]*)?(#[a-zA-Z0-9._~-]*)?`
const email = `[a-zA-Z0-9_-]+([.+][a-zA-Z0-9_-]+)*@${name}`

const formats: Readonly<Record<string, string>> = {
  date,
  time,
  "date-time": `${date}T${time}`,
  duration:
    "P(\\d{1,4}Y)?(\\d{1,2}M)?\\d{1,3}D(T\\d{1,3}H(\\d{1,2}M(\\d{1,2}S)?)?)?|PT\\d{1,3}[HMS]|P\\d{1,3}W",
  email,
  "idn-email": email,
  hostname: host,
  "idn-hostname": host,
  ipv4: `${octet}(\\.${octet}){3}`,
  ipv6: `(${group}:){7}${group}|(${group}:){1,4}:${group}|::${group}|::1`,
  uri,
  "uri-reference": `${uri}|/(${segment}/)*${segment}`,
  iri: uri,
  "iri-reference": uri,
  "uri-template": uri,
  uuid: "[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
  "json-pointer": "(/[a-zA-Z0-9_.-]*)*",
  "relative-json-pointer": "(0|[1-9]\\d{0,2})(/[a-zA-Z0-9_.-]*)*",
  regex: "\\^?[a-zA-Z0-9_ -]*\\$?",
}

/** What these say about a text is a note to the reader: no checker of JSON Schema looks at it. */
export const isKnownFormat = (format: string): boolean => Object.hasOwn(formats, format)

const automata = new Map<string, Automaton>()

/** Null for a format that JSON Schema does not have, which validators ignore. */
export function formatAutomaton(format: string): Automaton | null {
  const pattern = Object.hasOwn(formats, format) ? formats[format] : undefined
  if (pattern === undefined) return null
  const known = automata.get(format)
  if (known) return known
  const made = patternOf(`^(?:${pattern})$`, new Budget()).automaton
  automata.set(format, made)
  return made
}
