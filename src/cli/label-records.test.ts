import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { checkRecords, recordBytesMax } from "./label-records.ts"

const folder = mkdtempSync(join(tmpdir(), "umpire-records-"))
afterAll(() => rmSync(folder, { recursive: true }))

async function check(format: "csv" | "jsonl", ...pieces: (string | Buffer)[]): Promise<string> {
  const path = join(folder, `rows.${format}`)
  writeFileSync(path, Buffer.concat(pieces.map((piece) => Buffer.from(piece))))
  return await checkRecords(path, format).then(
    () => "read",
    (error: Error) => error.message,
  )
}

const nested = (depth: number): string => `{"a":1}\n${"[".repeat(depth)}${"]".repeat(depth)}\n`

test("JSON nested as deep as it may be is read, and one level more is refused with its record", async () => {
  expect(await check("jsonl", nested(512))).toBe("read")
  expect(await check("jsonl", nested(513))).toBe("cannot read record 2: it is nested deeper than 512 levels")
  expect(await check("jsonl", "[".repeat(1_000_000))).toContain("nested deeper")
})

test("brackets in a string nest nothing, whatever is escaped in it", async () => {
  expect(await check("jsonl", JSON.stringify({ text: `\\"${"[".repeat(10_000)}` }))).toBe("read")
})

test("a record of the longest size is read, and a byte more is refused with its record", async () => {
  expect(await check("csv", "text\n", Buffer.alloc(recordBytesMax, "x"), "\nb\n")).toBe("read")
  const refused = await check("csv", "text\n", Buffer.alloc(recordBytesMax + 1, "x"), "\nb\n")
  expect(refused).toBe("cannot read record 2: it is longer than 8 MiB")
})

test("a line break in a quoted field ends no record, and a quotation mark that is not closed is told", async () => {
  const lines = Buffer.alloc(recordBytesMax, "x\n")
  expect(await check("csv", 'text\n"a ""quoted""\nfield",', lines)).toBe("read")
  expect(await check("csv", 'text\n"', lines)).toContain("is a quotation mark missing?")
})
