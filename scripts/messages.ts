/**
 * The messages of the console, as its sources name them: `node scripts/messages.ts` prints all, with `--missing` those that a
 * catalog lacks, for each language.
 */
import { existsSync, readFileSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { parseAst } from "rolldown/parseAst"

const sources = join(import.meta.dirname, "..", "console", "src")
const catalogs = join(sources, "i18n", "catalogs")

/** A plural has a form for one; its other form is the key. */
export interface Message {
  readonly text: string
  readonly one?: string
}

interface Node {
  readonly type: string
  readonly [field: string]: unknown
}

/** Of one file: the arguments of `t` and `tn`, and the attributes of `<T>`. What is no literal has no key, and is an error. */
export function messagesIn(source: string, lang: "ts" | "tsx" = "tsx"): Message[] {
  return nodesOf(parseAst(source, { lang })).flatMap((node) => {
    if (node.type === "CallExpression") return ofCall(node)
    return node.type === "JSXOpeningElement" ? ofElement(node) : []
  })
}

function ofCall(node: Node): Message[] {
  const { name } = node["callee"] as { name?: unknown }
  const [first, second, third] = node["arguments"] as readonly unknown[]
  if (name === "t") return [{ text: textOf(first) }]
  return name === "tn" ? [{ text: textOf(third), one: textOf(second) }] : []
}

function ofElement(node: Node): Message[] {
  if ((node["name"] as { name?: unknown }).name !== "T") return []
  const attributes = node["attributes"] as readonly { name?: { name?: unknown }; value?: unknown }[]
  const of = (wanted: string): unknown => attributes.find(({ name }) => name?.name === wanted)?.value
  const one = of("one")
  return [{ text: textOf(of("text")), ...(one === undefined ? {} : { one: textOf(one) }) }]
}

function textOf(node: unknown): string {
  const { type, value, expression } = node as { type?: unknown; value?: unknown; expression?: unknown }
  if (type === "JSXExpressionContainer") return textOf(expression)
  if (type === "Literal" && typeof value === "string") return value
  throw new Error("The text of a message must be a literal: it is the key of its translations")
}

function nodesOf(value: unknown): Node[] {
  if (Array.isArray(value)) return value.flatMap(nodesOf)
  if (typeof value !== "object" || value === null) return []
  const found = Object.values(value).flatMap(nodesOf)
  return "type" in value && typeof value.type === "string" ? [value as Node, ...found] : found
}

/** Every message in use, once. */
export function messagesInUse(): readonly Message[] {
  const files = readdirSync(sources, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file) && !file.endsWith(".test.ts"))
    .toSorted()
  const found = new Map<string, Message>()
  for (const file of files)
    for (const message of messagesIn(
      readFileSync(join(sources, file), "utf8"),
      file.endsWith("x") ? "tsx" : "ts",
    )) {
      const known = found.get(message.text)
      if (known && known.one !== message.one)
        throw new Error(`“${message.text}” is a plural in one place and none, or another, in ${file}`)
      found.set(message.text, message)
    }
  return [...found.values()]
}

/** Each language with what its catalog has. */
export function readCatalogs(): Record<string, Record<string, unknown>> {
  const files = existsSync(catalogs) ? readdirSync(catalogs).filter((file) => file.endsWith(".json")) : []
  return Object.fromEntries(
    files.map((file) => [
      file.replace(".json", ""),
      JSON.parse(readFileSync(join(catalogs, file), "utf8")) as Record<string, unknown>,
    ]),
  )
}

if (import.meta.main) {
  const messages = messagesInUse()
  const show = ({ text, one }: Message): string =>
    JSON.stringify(one === undefined ? text : { one, other: text })
  if (process.argv.includes("--missing"))
    for (const [language, catalog] of Object.entries(readCatalogs())) {
      const missing = messages.filter(({ text }) => !Object.hasOwn(catalog, text))
      console.log(`${language}: ${missing.length} of ${messages.length} are missing`)
      for (const message of missing) console.log(`  ${show(message)}`)
    }
  else for (const message of messages) console.log(show(message))
}
