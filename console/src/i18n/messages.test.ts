/** Every message of the console is translated into every language, and nothing on its pages is left out. */
import { readFileSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { parseAst } from "rolldown/parseAst"
import { expect, test } from "vitest"
import { type Message, messagesIn, messagesInUse, readCatalogs } from "../../../scripts/messages.ts"
import { languages } from "./language.ts"

const messages = messagesInUse()
const catalogs = Object.entries(readCatalogs())
const byText = new Map(messages.map((message) => [message.text, message]))

test("every language but English has a catalog, and every catalog a language", () => {
  expect(catalogs.map(([language]) => language).toSorted()).toEqual(
    Object.keys(languages)
      .filter((code) => code !== "en")
      .toSorted(),
  )
})

test.each(catalogs)("%s has every message that is in use, and no other", (_, catalog) => {
  expect(messages.map(({ text }) => text).filter((text) => !Object.hasOwn(catalog, text))).toEqual([])
  expect(Object.keys(catalog).filter((text) => !byText.has(text))).toEqual([])
})

test.each(catalogs)(
  "%s has the values and elements of each message, and the forms of its plurals",
  (language, catalog) => {
    const wrong = Object.entries(catalog).filter(([text, given]) => {
      const message = byText.get(text)
      return message !== undefined && mistakeIn(message, given, language) !== null
    })
    expect(wrong.map(([text, given]) => [text, given, mistakeIn({ text }, given, language)])).toEqual([])
  },
)

/** Names in braces and tags, each as often as it stands. */
const marks = (text: string): string => (text.match(/\{\w+\}|<\/?\w+>/g) ?? []).toSorted().join(" ")

/** Few languages have a form that only very large or broken numbers take; it may be left out. */
const neededForms = (language: string): string[] =>
  new Intl.PluralRules(language)
    .resolvedOptions()
    .pluralCategories.filter((category) => category !== "many" || language === "pl")

function mistakeIn({ text, one }: Message, given: unknown, language: string): string | null {
  if (one === undefined) {
    if (typeof given !== "string" || given.trim() === "") return "needs a text"
    return marks(given) === marks(text) ? null : "has other values or elements"
  }
  if (typeof given !== "object" || given === null) return "needs the forms of a plural"
  const forms = Object.entries(given)
  const missing = neededForms(language).find((category) => !forms.some(([name]) => name === category))
  if (missing) return `lacks the form ${missing}`
  const isSound = ([, form]: [string, unknown]): boolean =>
    typeof form === "string" && [marks(text), marks(one)].includes(marks(form))
  return forms.every(isSound) ? null : "has other values or elements"
}

test.each([
  ['t("Delete {name}?", { name })', [{ text: "Delete {name}?" }]],
  ['tn(2, "{count} row", "{count} rows")', [{ text: "{count} rows", one: "{count} row" }]],
  ['x = <T text="Read <a>this</a>" a={b} />', [{ text: "Read <a>this</a>" }]],
  ['x = <T text={"a \\"b\\""} one="c" count={1} />', [{ text: 'a "b"', one: "c" }]],
  ['x = <p title={t("A")}>{t("B")}</p>', [{ text: "A" }, { text: "B" }]],
])("the messages of %s are found", (source, found) => {
  expect(messagesIn(source)).toEqual(found)
})

test("a message that is put together has no key and is refused", () => {
  expect(() => messagesIn("t(`Delete ${name}?`)")).toThrow("must be a literal")
  expect(() => messagesIn("t(text)")).toThrow("must be a literal")
})

const folder = join(import.meta.dirname, "..")
const sources = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
  file.endsWith(".tsx"),
)

/** What is typed or pressed reads the same in every language, and so do names. */
const typed = new Set(["code", "kbd", "Key", "Command"])
const names = new Set(["Umpire", "openapi.json", "PSI"])

function textsBetweenTags(node: unknown, within = ""): string[] {
  if (Array.isArray(node)) return node.flatMap((one) => textsBetweenTags(one, within))
  if (typeof node !== "object" || node === null) return []
  const { type, value, openingElement } = node as {
    type?: unknown
    value?: unknown
    openingElement?: { name?: { name?: string } }
  }
  if (type === "JSXText") {
    const text = String(value).trim()
    return /\p{L}{2}/u.test(text) && !names.has(text) && !typed.has(within) ? [text] : []
  }
  const element = type === "JSXElement" ? (openingElement?.name?.name ?? "") : within
  return Object.values(node).flatMap((child) => textsBetweenTags(child, element))
}

test("no text stands between tags by itself", () => {
  const found = sources.flatMap((file) =>
    textsBetweenTags(parseAst(readFileSync(join(folder, file), "utf8"), { lang: "tsx" })).map(
      (text) => `${file}: ${text}`,
    ),
  )
  expect(found).toEqual([])
})

test("places are named by where a line begins and ends, not by left and right", () => {
  const physical =
    /[\s"'`:!-](?:m[lr]|p[lr]|left|right|scroll-m[lr])-[\d[]|[\s"'`:](?:text-(?:left|right)|border-[lr]|rounded-(?:[lr]|[tb][lr]))[\s"'`-]/
  expect(sources.filter((file) => physical.test(readFileSync(join(folder, file), "utf8")))).toEqual([])
})
