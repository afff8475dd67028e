import { type ReactNode, createElement } from "react"
import { renderToStaticMarkup } from "react-dom/server"
import { afterEach, expect, test } from "vitest"
import { T } from "./sentence.tsx"
import { setLanguage } from "./translate.ts"

afterEach(() => setLanguage("en", {}))

const a = (children: ReactNode): ReactNode => createElement("a", { href: "/docs" }, children)
const markup = (props: Parameters<typeof T>[0]): string => renderToStaticMarkup(createElement(T, props))

test("elements stand in the sentence where its language has them", () => {
  const text = "Read the <a>docs of {what}</a> first"
  const what = createElement("b", null, "keys")
  expect(markup({ text, a, what })).toBe('Read the <a href="/docs">docs of <b>keys</b></a> first')
  setLanguage("de", { [text]: "Zuerst {what}: <a>Dokumentation</a> lesen" })
  expect(markup({ text, a, what })).toBe('Zuerst <b>keys</b>: <a href="/docs">Dokumentation</a> lesen')
})

test("a sentence with a number has the form of its plural", () => {
  const text = "{count} rows, <a>see them</a>"
  const one = "{count} row, <a>see it</a>"
  expect([1, 2000].map((count) => markup({ text, one, count, a }))).toEqual([
    '1 row, <a href="/docs">see it</a>',
    '2,000 rows, <a href="/docs">see them</a>',
  ])
  setLanguage("ja", { [text]: { other: "{count} 行、<a>表示</a>" } })
  expect(markup({ text, one, count: 1, a })).toBe('1 行、<a href="/docs">表示</a>')
})

test("braces and tags that have no value stay as they are written", () => {
  expect(markup({ text: "{a} <b>c</b>" })).toBe("{a} &lt;b&gt;c&lt;/b&gt;")
})
