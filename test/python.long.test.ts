/** The examples of docs/python.md: run with pandas, Polars, DuckDB and openai from PyPI; those of Airflow and dbt are only parsed. */
import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, expect, test } from "vitest"
import { installPython } from "./python.ts"
import { installMs } from "./run-folder.ts"
import { type TestServer, startServer } from "./server.ts"

const packages = ["pandas==3.1.1", "polars==2.1.0", "duckdb==2.0.0", "pyarrow==26.0.1", "openai==3.51.0"]

const page = readFileSync(join(import.meta.dirname, "..", "docs", "python.md"), "utf8")
/** By their first lines. */
const examples = new Map(
  [...page.matchAll(/```python\n# (\S+)\n([\s\S]*?)```/g)].map(([, name = "", code = ""]) => [name, code]),
)

let folder = ""
let server: TestServer
const run = async (command: string, ...args: string[]): Promise<string> => {
  const env = { ...process.env, UMPIRE_URL: server.url, UMPIRE_API_KEY: server.key, PYTHONPATH: folder }
  return (await promisify(execFile)(command, args, { cwd: folder, env })).stdout
}
let python = ""

async function runExample(name: string): Promise<string> {
  const file = join(folder, `example_${name}.py`)
  writeFileSync(file, examples.get(name) ?? "raise SystemExit('no such example')")
  return await run(python, file)
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "umpire-python-"))
  server = await startServer()
  python = await installPython(folder, packages)
  writeFileSync(join(folder, "umpire_rows.py"), examples.get("umpire_rows.py") ?? "")
}, installMs)
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

test.each(["pandas", "polars"])("%s gets a column for each answer", async (name) => {
  const [first, second] = JSON.parse(await runExample(name)) as { refund: number; topic: string }[]
  expect([first?.topic, second?.topic]).toEqual(["delivery", "billing"])
  expect(first?.refund).toBeGreaterThan(second?.refund ?? 1)
})

test("DuckDB asks in SQL", async () => {
  expect(await runExample("duckdb")).toBe("[('billing', 1), ('delivery', 1)]\n")
})

test("plain HTTP needs no package", async () => {
  expect(Number(await runExample("plain"))).toBeGreaterThan(0.5)
})

test("the examples of Airflow and dbt are Python", async () => {
  for (const name of ["airflow", "dbt"]) {
    const file = join(folder, `${name}.py`)
    writeFileSync(file, examples.get(name) ?? "(")
    await run(python, "-m", "py_compile", file)
  }
})
