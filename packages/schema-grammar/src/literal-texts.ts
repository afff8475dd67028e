/** The smallest pieces that grammars of JSON are written with. */
import { type Rule, all, any, maybe, text } from "./grammar.ts"

/** A model may write one space where JSON allows any. */
export const space = maybe(text(" "))
export const comma = (isDue: boolean): Rule[] => (isDue ? [text(","), space] : [])

/** Texts that share their beginnings share its rules, so that few ways are open at once. */
export function literalTexts(texts: readonly string[]): Rule {
  const distinct = [...new Set(texts)].map((one) => Array.from(one))
  return trie(distinct, 0)
}

function trie(texts: readonly (readonly string[])[], at: number): Rule {
  const [first] = texts
  if (texts.length === 1 && first) return text(first.slice(at).join(""))
  let end = at
  while (texts.every((one) => one[end] !== undefined && one[end] === first?.[end])) end++
  const groups = new Map<string, (readonly string[])[]>()
  for (const one of texts) {
    const group = groups.get(one[end] ?? "")
    if (group) group.push(one)
    else groups.set(one[end] ?? "", [one])
  }
  const options = [...groups].map(([key, group]) => (key === "" ? text("") : trie(group, end)))
  const shared = first?.slice(at, end).join("") ?? ""
  return shared === "" ? any(...options) : all(text(shared), any(...options))
}
