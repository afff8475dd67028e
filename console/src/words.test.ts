/** The words that people read in the console: everything that its sources show, without those that only programs know. */
import { readFileSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { parseAst } from "rolldown/parseAst"
import { expect, test } from "vitest"

const folder = import.meta.dirname
const sources = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
  (file) => /\.tsx?$/.test(file) && !file.endsWith(".test.ts"),
)

/** A text is shown where it stands between tags, has a space, or begins like a sentence; a name of a field does none of it. */
const isShown = (text: string): boolean => /\s/.test(text.trim()) || /^[A-Z][a-z]/.test(text)

function textsOf(node: unknown, found: string[] = []): string[] {
  if (Array.isArray(node)) for (const one of node) textsOf(one, found)
  else if (typeof node === "object" && node !== null) {
    const { type, value } = node as { type?: unknown; value?: unknown }
    if (type === "ImportDeclaration") return found
    if (type === "JSXText") found.push(String(value))
    else if (type === "Literal" && typeof value === "string" && isShown(value)) found.push(value)
    else if (type === "TemplateElement") {
      const { cooked } = value as { cooked?: string }
      if (cooked && isShown(cooked)) found.push(cooked)
    }
    for (const child of Object.values(node)) textsOf(child, found)
  }
  return found
}

const textsIn = (source: string, lang: "ts" | "tsx" = "tsx"): string[] => textsOf(parseAst(source, { lang }))

const hidden = /\b(?:artefacts?|skus?|evidence)\b/i

test.each(sources)("%s shows no word that only programs know", (file) => {
  const lang = file.endsWith(".tsx") ? "tsx" : "ts"
  const texts = textsIn(readFileSync(join(folder, file), "utf8"), lang)
  expect(texts.filter((text) => hidden.test(text))).toEqual([])
})

test("texts between tags, in attributes, strings and templates are found, names of fields are not", () => {
  const source =
    'import a from "Evidence x"; const b = <p title="An artefact">The SKU {`of evidence ${c}`}</p>; d("evidence")'
  expect(textsIn(source).filter((text) => hidden.test(text))).toEqual([
    "An artefact",
    "The SKU ",
    "of evidence ",
  ])
})
