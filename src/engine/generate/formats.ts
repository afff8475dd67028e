/** The formats of strings that can be written so that any checker accepts them. */
import { type Lengths, type Rule, all, any, lengthsOf, maybe, repeat, set, text } from "./grammar.ts"

const digit = set(["0", "9"])
const twoDigits = repeat(digit, 2, 2)
const month = any(all(text("0"), set(["1", "9"])), all(text("1"), set(["0", "2"])))
/** Every month has a 28th. */
const day = any(all(text("0"), set(["1", "9"])), all(text("1"), digit), all(text("2"), set(["0", "8"])))
const date = all(set(["1", "2"]), repeat(digit, 3, 3), text("-"), month, text("-"), day)
const hour = any(all(set(["0", "1"]), digit), all(text("2"), set(["0", "3"])))
const sixty = all(set(["0", "5"]), digit)
const time = all(
  hour,
  text(":"),
  sixty,
  text(":"),
  sixty,
  maybe(all(text("."), repeat(digit, 1, 6))),
  text("Z"),
)
const word = repeat(set(["a", "z"], ["0", "9"]), 1, 20)
const octet = any(digit, all(set(["1", "9"]), digit), all(text("1"), twoDigits))
const lowerHex = set(["0", "9"], ["a", "f"])

const formats: Readonly<Record<string, Rule>> = {
  date,
  time,
  "date-time": all(date, text("T"), time),
  email: all(word, text("@"), word, text("."), any(text("com"), text("org"), text("net"))),
  uuid: all(
    repeat(lowerHex, 8, 8),
    text("-"),
    repeat(lowerHex, 4, 4),
    text("-4"),
    repeat(lowerHex, 3, 3),
    text("-"),
    set(["8", "9"], ["a", "b"]),
    repeat(lowerHex, 3, 3),
    text("-"),
    repeat(lowerHex, 12, 12),
  ),
  ipv4: all(octet, text("."), octet, text("."), octet, text("."), octet),
  hostname: all(word, text("."), any(text("com"), text("org"), text("net"))),
  uri: all(
    text("https://"),
    word,
    text("."),
    any(text("com"), text("org"), text("net")),
    repeat(all(text("/"), word), 0, 4),
  ),
}

/** Undefined for a format that is not among them. */
export function formatRule(format: string): (Lengths & { readonly rule: Rule }) | undefined {
  const rule = Object.hasOwn(formats, format) ? formats[format] : undefined
  return rule && { rule, ...lengthsOf(rule) }
}
