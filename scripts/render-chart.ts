/**
 * Renders the Helm chart without Helm: the part of its templates' language that the chart uses, and nothing else; what it
 * does not know is an error. `node scripts/render-chart.ts` writes deploy/kubernetes.yaml with the default values.
 */
import { createHash } from "node:crypto"
import { readFileSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { parse, stringify } from "yaml"

const chart = join(import.meta.dirname, "..", "chart")

type Node =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "output"; readonly expression: string }
  | { readonly kind: "if"; readonly condition: string; readonly matching: Node[]; readonly otherwise: Node[] }

interface Rendering {
  readonly data: unknown
  readonly definitions: Map<string, Node[]>
}

/** The documents of the chart with these values over its own. */
export function renderChart(values: object = {}, release = "umpire"): string {
  const { appVersion } = parse(readFileSync(join(chart, "Chart.yaml"), "utf8")) as { appVersion: string }
  const defaults: unknown = parse(readFileSync(join(chart, "values.yaml"), "utf8"))
  const data = {
    Values: merged(defaults, values),
    Chart: { AppVersion: appVersion },
    Release: { Name: release, Service: "Helm" },
  }
  const rendering: Rendering = { data, definitions: new Map() }
  const files = readdirSync(join(chart, "templates")).toSorted()
  const parsed = files.map((file) =>
    parseTemplate(readFileSync(join(chart, "templates", file), "utf8"), rendering.definitions),
  )
  const documents = parsed.map((nodes) => render(nodes, rendering).trim()).filter((text) => text !== "")
  return `${documents.map((text) => text.replace(/^---\n/, "")).join("\n---\n")}\n`
}

function merged(base: unknown, over: unknown): unknown {
  if (!isObject(base) || !isObject(over)) return over === undefined ? base : over
  const names = new Set([...Object.keys(base), ...Object.keys(over)])
  return Object.fromEntries([...names].map((name) => [name, merged(base[name], over[name])]))
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** `{{-` removes the space before it, `-}}` the space after it, newlines included. */
function parseTemplate(source: string, definitions: Map<string, Node[]>): Node[] {
  const parts = source.split(/(\{\{-?[\s\S]*?-?\}\})/)
  const root: Node[] = []
  const open: { nodes: Node[]; branch?: Extract<Node, { kind: "if" }>; name?: string }[] = [{ nodes: root }]
  parts.forEach((part, index) => {
    const top = open.at(-1)
    if (!top) throw new Error("Cannot read the template: there is an end too many")
    if (!part.startsWith("{{")) {
      const afterTrim = parts[index - 1]?.endsWith("-}}") === true ? part.trimStart() : part
      const text = parts[index + 1]?.startsWith("{{-") === true ? afterTrim.trimEnd() : afterTrim
      top.nodes.push({ kind: "text", text })
      return
    }
    const expression = part.replace(/^\{\{-?\s*/, "").replace(/\s*-?\}\}$/, "")
    const [word = "", rest = ""] = expression.split(/\s+([\s\S]*)/)
    if (word === "if") {
      const branch = { kind: "if" as const, condition: rest, matching: [], otherwise: [] }
      top.nodes.push(branch)
      open.push({ nodes: branch.matching, branch })
    } else if (word === "else" && top.branch) open.splice(-1, 1, { nodes: top.branch.otherwise })
    else if (word === "define") open.push({ nodes: [], name: rest.replaceAll('"', "") })
    else if (word === "end") {
      open.pop()
      if (top.name !== undefined) definitions.set(top.name, top.nodes)
    } else top.nodes.push({ kind: "output", expression })
  })
  if (open.length !== 1) throw new Error("Cannot read the template: an end is missing")
  return root
}

function render(nodes: readonly Node[], rendering: Rendering): string {
  return nodes
    .map((node): string => {
      if (node.kind === "text") return node.text
      if (node.kind === "output") return shown(evaluate(node.expression, rendering))
      return render(isTrue(evaluate(node.condition, rendering)) ? node.matching : node.otherwise, rendering)
    })
    .join("")
}

function shown(value: unknown): string {
  if (typeof value === "string") return value
  if (typeof value === "number" || typeof value === "boolean") return String(value)
  if (value === undefined || value === null) return ""
  throw new Error("Cannot render a list or a map as it is: use toYaml")
}

/** As Go's templates: nothing, false, 0, and what is empty are false. */
function isTrue(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return isObject(value) ? Object.keys(value).length > 0 : Boolean(value)
}

/** A pipeline: the value of each stage is the last argument of the next. */
function evaluate(expression: string, rendering: Rendering): unknown {
  return expression
    .split("|")
    .map((stage) => stage.trim().match(/"[^"]*"|\S+/g) ?? [])
    .reduce<unknown>((piped, [name = "", ...words], index) => {
      const given = words.map((word) => operand(word, rendering))
      return call(name, index === 0 ? given : [...given, piped], rendering)
    }, undefined)
}

function call(name: string, given: readonly unknown[], rendering: Rendering): unknown {
  const [first, second] = given
  switch (name) {
    case "quote":
      return JSON.stringify(shown(first))
    case "default":
      return isTrue(second) ? second : first
    case "not":
      return !isTrue(first)
    case "toYaml":
      return stringify(first, { lineWidth: 0 }).trimEnd()
    case "sha256sum":
      return createHash("sha256").update(shown(first)).digest("hex")
    case "nindent":
      return `\n${shown(second)
        .split("\n")
        .map((line) => " ".repeat(Number(first)) + line)
        .join("\n")}`
    case "include": {
      const nodes = rendering.definitions.get(String(first))
      if (!nodes) throw new Error(`Cannot render: there is no definition ${String(first)}`)
      return render(nodes, rendering)
    }
    default:
      return operand(name, rendering)
  }
}

function operand(word: string, { data }: Rendering): unknown {
  if (word === ".") return data
  if (word.startsWith('"')) return word.slice(1, -1)
  if (/^\d+$/.test(word)) return Number(word)
  if (!/^(?:\.\w+)+$/.test(word)) throw new Error(`Cannot render ${word}: it is not known here`)
  return word
    .slice(1)
    .split(".")
    .reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), data)
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  writeFileSync(
    join(import.meta.dirname, "..", "deploy", "kubernetes.yaml"),
    `# Made by scripts/render-chart.ts from chart/ with its default values. The secret "umpire" is yours to make:\n#   kubectl create secret generic umpire --from-literal=database-url=postgres://user:password@host/umpire\n${renderChart()}`,
  )
