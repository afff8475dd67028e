/** The documentation says what the code does. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { ModelConfig } from "../src/base/config-models.ts"
import { generatedTables, withTable } from "../scripts/docs.ts"

const root = join(import.meta.dirname, "..")
const read = (...path: string[]): string => readFileSync(join(root, ...path), "utf8")

test.each(Object.entries(generatedTables))(
  "docs/%s lists what the code has (npm run docs writes it)",
  (name, table) => {
    const page = read("docs", name)
    expect(page).toBe(withTable(page, table()))
    expect(page).toContain(table())
  },
)

test("every field of a model is described", () => {
  const page = read("docs", "configuration.md")
  for (const field of Object.keys(ModelConfig.shape)) expect(page).toContain(`\`${field}\``)
})

const pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].concat(
  readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name)),
)

test.each(pages)("the links of %s lead somewhere", (page) => {
  for (const [, target = ""] of read(page).matchAll(/\]\((?!https?:)([^)#]+)[^)]*\)/g))
    expect(existsSync(join(root, dirname(page), target)), target).toBe(true)
})

test("decisions are numbered without gaps, listed in their index, and say when to revisit them", () => {
  const names = readdirSync(join(root, "docs", "decisions")).filter((name) => name !== "README.md")
  const index = read("docs", "decisions", "README.md")
  expect(names.map((name) => Number(name.slice(0, 4)))).toEqual(names.map((_, at) => at + 1))
  for (const [at, name] of names.entries()) {
    const text = read("docs", "decisions", name)
    const title =
      new RegExp(`^# ${at + 1}\\. (.+)$`, "m").exec(text)?.[1] ?? expect.fail(`${name} has no title`)
    expect(index).toContain(`| [${at + 1}](${name}) | ${title} |`)
    expect(text, name).toMatch(/When to revisit/)
  }
})

test("the README's two commands are npm scripts", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> }
  for (const [, command = ""] of read("README.md").matchAll(/^npm (start|test)$/gm))
    expect(scripts).toHaveProperty([command])
  expect(read(".ci", "run")).toMatch(/^npm test$/m)
})
