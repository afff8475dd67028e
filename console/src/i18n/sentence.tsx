/** A sentence with elements in it: translated whole, so that each language orders its words. */
import { Fragment, type ReactNode, createElement } from "react"
import { count as formatCount, form, translated } from "./translate.ts"

type Element = (children: ReactNode) => ReactNode

interface Sentence {
  readonly text: string
  /** For `{count}` things: the form for one of them. */
  readonly one?: string
  readonly count?: number
  /** What stands for `{name}`, and what makes the element of `<name>...</name>`. */
  readonly [name: string]: ReactNode | Element
}

export function T({ text, one, count, ...rest }: Sentence): ReactNode {
  const values = count === undefined ? rest : { ...rest, count: formatCount(count) }
  return fill(count === undefined || one === undefined ? translated(text) : form(count, one, text), values)
}

const piece = /\{(\w+)\}|<(\w+)>(.*?)<\/\2>/s

function fill(text: string, values: Readonly<Record<string, ReactNode | Element>>): ReactNode {
  const parts: ReactNode[] = []
  let rest = text
  for (let found = piece.exec(rest); found; found = piece.exec(rest)) {
    const [whole, name = "", tag = "", inner = ""] = found
    parts.push(
      rest.slice(0, found.index),
      valueOf(values[name || tag], whole, () => fill(inner, values)),
    )
    rest = rest.slice(found.index + whole.length)
  }
  return createElement(Fragment, null, ...parts, rest)
}

/** What has no value stays as it is written. */
function valueOf(value: ReactNode | Element, written: string, inner: () => ReactNode): ReactNode {
  if (typeof value === "function") return value(inner())
  return value === undefined ? written : value
}
