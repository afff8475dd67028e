/** Lines that are pasted where one option is written become one option each. */
import { type DraftOption, option } from "./draft.ts"

/** A bullet or a number in front of a line. */
const bullet = /^\s*(?:[-*•–]|\d+[.)])\s+/

/** Null for a text of one line, which is pasted as usual. A tab divides the name from what it means. */
export function pastedOptions(text: string): DraftOption[] | null {
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.replace(bullet, "").trim())
    .filter((line) => line !== "")
  if (lines.length < 2) return null
  return lines.map((line) => {
    const [value = "", ...rest] = line.split("\t")
    return option(value.trim(), rest.join(" ").trim())
  })
}
