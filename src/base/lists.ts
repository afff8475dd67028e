/** Lists of which something is known that their types do not say. */

/** The element at a place that is within the list. */
export function elementAt<Element>(list: readonly Element[], index: number): Element {
  const element = list[index]
  if (element === undefined) throw new RangeError(`Cannot take element ${index} of ${list.length}`)
  return element
}

export function nonEmpty<Element>([first, ...rest]: readonly Element[]): readonly [Element, ...Element[]] {
  if (first === undefined) throw new RangeError("Cannot use an empty list")
  return [first, ...rest]
}

/** Of an object that has no other fields than its type says. */
export const keysOf = <Key extends string>(fields: Readonly<Record<Key, unknown>>): Key[] =>
  Object.keys(fields) as Key[]
