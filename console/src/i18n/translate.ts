/** The texts of the console in the language of the page. The English text is the key; what a catalog lacks stays English. */

/** The forms of a plural, by the categories that its language has. */
export type Forms = Readonly<Partial<Record<Intl.LDMLPluralRule, string>>>
export type Catalog = Readonly<Record<string, string | Forms>>

/** The language of texts, numbers and dates; set once, before anything of the console is loaded. */
export let language = "en"
let catalog: Catalog = {}
let plurals = new Intl.PluralRules(language)
let numbers = new Intl.NumberFormat(language, { maximumFractionDigits: 0 })

export function setLanguage(code: string, texts: Catalog): void {
  language = code
  catalog = texts
  plurals = new Intl.PluralRules(code)
  numbers = new Intl.NumberFormat(code, { maximumFractionDigits: 0 })
}

/** A number of things, in full. */
export const count = (value: number): string => numbers.format(value)

/** The names in braces: each needs its value. */
type Names<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Names<Rest>
  : never
type Values<Name extends string> = [Name] extends [never]
  ? []
  : [values: Readonly<Record<Name, string | number>>]

/** The text in the language of the page, with the values in the places of their names. */
export function t<Text extends string>(text: Text, ...[values]: Values<Names<Text>>): string {
  return fill(translated(text), values)
}

/** The same for a number of things: `{count}` is that number. The second form is the key. */
export function tn<One extends string, Other extends string>(
  many: number,
  one: One,
  other: Other,
  ...[values]: Values<Exclude<Names<One | Other>, "count">>
): string {
  return fill(form(many, one, other), { ...values, count: count(many) })
}

export function translated(text: string): string {
  const found = catalog[text]
  return typeof found === "string" ? found : text
}

export function form(many: number, one: string, other: string): string {
  const found = catalog[other]
  if (typeof found !== "object") return many === 1 ? one : other
  return found[plurals.select(many)] ?? found.other ?? other
}

function fill(text: string, values: Readonly<Record<string, string | number>> = {}): string {
  return text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole))
}
