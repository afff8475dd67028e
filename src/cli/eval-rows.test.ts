import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { readEvalSet } from "./eval-rows.ts"

const folder = mkdtempSync(join(tmpdir(), "umpire-eval-rows-"))
afterAll(() => rmSync(folder, { recursive: true }))

async function read(name: string, content: string | Buffer) {
  const path = join(folder, name)
  writeFileSync(path, content)
  return await readEvalSet(path, name, 1000)
}

const table =
  "text;question;options;gold;scale\nGrüße, zu spät;Is it late?;yes|no;yes;\n;;;;\nNett;How?;calm|angry;calm;true\n"

test.each([
  ["UTF-8", Buffer.from(table)],
  ["Latin-1", Buffer.from(table, "latin1")],
])("a CSV in %s gives questions of every kind, and blank rows are none", async (_, content) => {
  const { name, rows } = await read("tickets.csv", content)
  expect([name, rows.map(({ text, question, gold }) => [text, question.type, gold])]).toEqual([
    "tickets",
    [
      ["Grüße, zu spät", "predicate", "yes"],
      ["Nett", "score", "calm"],
    ],
  ])
})

test.each([
  ["a.xlsx", "PK", "a.xlsx is an Excel file. Save the sheet as CSV: in Excel, File, Save As"],
  ["b.csv", "text,question,options,gold\na,b,yes|no,maybe\n", "b.csv:1: gold is not one of the options"],
  ["c.csv", "text,question,options,gold\n", "c.csv holds no rows"],
  ["d.csv", "text,question,options,gold\na,b\n", "cannot read d.csv"],
])("%s is refused in words", async (name, content, sentence) => {
  await expect(read(name, content)).rejects.toThrow(sentence)
})
