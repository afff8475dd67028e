/** The documentation says what the code does. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
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

test("the tour shows every picture that it has, and they are less than 1 MB together", () => {
  const shown = [...read("docs", "tour.md").matchAll(/\]\(tour\/([^)]+)\)/g)].map(([, name]) => name)
  const taken = readdirSync(join(root, "docs", "tour"))
  expect(new Set(taken)).toEqual(new Set(shown))
  const bytes = taken.map((name) => statSync(join(root, "docs", "tour", name)).size)
  expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThan(1_000_000)
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

test("every alert has a row that says what it means and what to do, and no row is of none", () => {
  const alerts = [...read("deploy", "prometheus-rules.yaml").matchAll(/- alert: (\w+)/g)].map(
    ([, name = ""]) => name,
  )
  const section = /## What each alert means\n([\s\S]*?)\n## /.exec(read("docs", "operations.md"))?.[1] ?? ""
  const rows = section.split("\n").filter((line) => line.startsWith("| `"))
  expect(rows.flatMap((row) => row.match(/Umpire\w+/g) ?? []).toSorted()).toEqual(alerts.toSorted())
  for (const row of rows) expect(row.split("|").filter((cell) => cell.trim() !== "")).toHaveLength(3)
})

test("every field that a line of the log may have is described", () => {
  const section = /## Lines of the log\n([\s\S]*?)\n## /.exec(read("docs", "operations.md"))?.[1] ?? ""
  const described = new Set([...section.matchAll(/`(\w+)`/g)].map(([, name]) => name))
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
    .map((name) => read("src", name))
  const written = sources.flatMap((text) =>
    [...text.matchAll(/\blog\.(?:debug|info|warn|error|fatal)\(\s*\{([^}]*)\}/g)].flatMap(([, fields = ""]) =>
      [...fields.matchAll(/(?:^|,)\s*(\w+)/g)].map(([, name = ""]) => name),
    ),
  )
  expect(written.length).toBeGreaterThan(50)
  expect([...new Set(written)].filter((name) => !described.has(name))).toEqual([])
})
