/** The string extension of CEL, with two of its functions put right: a rule must not lose the end of a text unseen. */
import { type CelFunc, CelScalar, celMethod, listType } from "@bufbuild/cel"
import { strings as given } from "@bufbuild/cel/ext"

const { STRING, INT } = CelScalar

/** The library drops what is left after the last piece; the extension keeps it in the last piece. */
const split = celMethod("split", STRING, [STRING, INT], listType(STRING), function (separator, limit) {
  const pieces = this.split(separator)
  const count = Number(limit)
  if (count < 0 || pieces.length <= count) return pieces
  if (count === 0) return []
  return [...pieces.slice(0, count - 1), pieces.slice(count - 1).join(separator)]
})

/** The library replaces nothing when the limit is negative; the extension then has no limit. */
const replace = celMethod("replace", STRING, [STRING, STRING, INT], STRING, function (found, by, limit) {
  if (limit < 0n) return this.replaceAll(found, () => by)
  let left = Number(limit)
  return this.replaceAll(found, (match) => (left-- > 0 ? by : match))
})

/** A function of the same signature that comes later takes the place of the earlier one. */
export const strings: CelFunc[] = [...given, split, replace]
