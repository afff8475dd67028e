/**
 * Writes model/check-rows.jsonl: 200 rows of the banks, evenly over their domains, on which `umpire models check` calibrates a chat
 * model: 100 of yes or no, 50 choices, 50 scores. `node scripts/check-rows.ts`
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { CheckRow } from "../src/main/model-check.ts"

type Attribute =
  | { kind: "choice"; ask: string[]; options: { id: string; names: string[]; desc: string }[] }
  | { kind: "scale"; ask: string[]; levels: string[][] }
  | { kind: "bool"; yes: string[] }

interface Bank {
  readonly attributes: readonly Attribute[]
  readonly rows: readonly (readonly [text: string, ...labels: (string | number | boolean | null)[]])[]
}

const wanted = { bool: 100, choice: 50, scale: 50 } as const
const model = join(import.meta.dirname, "..", "model")
const banks = readFileSync(join(model, "banks", "domains.jsonl"), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Bank)

const rows = (["bool", "choice", "scale"] as const).flatMap((kind) => {
  const offered = banks.flatMap(({ attributes, rows: all }) =>
    attributes.flatMap((attribute, at) => (attribute.kind === kind ? [{ attribute, at, all }] : [])),
  )
  const step = offered.length / wanted[kind]
  return Array.from({ length: wanted[kind] }, (_, nth) => {
    const from = offered[Math.floor(nth * step)]
    const usable = from?.all.filter((row) => row[from.at + 1] !== null && row[0].length < 800) ?? []
    const row = usable[nth % usable.length]
    return from && row ? [rowOf(from.attribute, row[0], row[from.at + 1])] : []
  }).flat()
})

function rowOf(attribute: Attribute, text: string, label: unknown): CheckRow {
  switch (attribute.kind) {
    case "bool":
      return {
        kind: "predicate",
        text,
        instructions: attribute.yes[0] ?? "",
        options: [],
        right: label === true ? 0 : null,
      }
    case "choice": {
      const options = attribute.options.map(({ names, desc }) => ({
        value: names[0] ?? "",
        description: desc,
      }))
      const right = attribute.options.findIndex(({ id }) => id === label)
      return { kind: "choice", text, instructions: attribute.ask[0] ?? "", options, right }
    }
    case "scale": {
      const options = attribute.levels.map((names) => ({ value: names[0] ?? "", description: "" }))
      return { kind: "score", text, instructions: attribute.ask[0] ?? "", options, right: Number(label) }
    }
  }
}

writeFileSync(join(model, "check-rows.jsonl"), rows.map((row) => `${JSON.stringify(row)}\n`).join(""))
