import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, expect, test } from "vitest"
import { type WholeSheet, readExcel } from "../../test/excel-file.ts"
import type { CellType } from "./excel-cells.ts"
import { writeExcel } from "./excel-writer.ts"

type Row = readonly (string | null)[]

const folder = mkdtempSync(join(tmpdir(), "umpire-excel-"))
const path = join(folder, "out.xlsx")
afterAll(() => rmSync(folder, { recursive: true }))

async function write(types: readonly CellType[], ...pages: readonly (readonly Row[])[]): Promise<void> {
  const columns = types.map((type, at) => ({ name: `c${at}`, type }))
  await writeExcel(path, columns, fromPages(pages))
}

async function* fromPages(pages: readonly (readonly Row[])[]): AsyncGenerator<readonly Row[]> {
  yield* pages
}

const readBack = async (): Promise<WholeSheet> => await readExcel(path)

test("what is written is read again with its types, in its order", async () => {
  const types = ["BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "TIME", "VARCHAR"] as const
  const first = ["1", "0.5", "true", "2026-01-02", "2026-01-02 03:04:05.250", "23:59:59", "=1+1"]
  const second = ["-7", "1e+300", "false", "1999-12-31", "1954-10-03 18:00:00", "00:00:00", "007"]
  await write(types, [first], [second, ["3", null, null, null, null, null, null]])
  const { rows, types: found } = await readBack()
  expect(found).toEqual(types)
  expect(rows).toEqual([first, second.with(1, String(1e300)), ["3", null, null, null, null, null, null]])
})

test("a number or a date that Excel cannot hold is written as text", async () => {
  const row = ["1234567890123456789", "NaN", "1815-12-10", "0044-03-15 (BC) 00:00:00"]
  await write(["BIGINT", "DOUBLE", "DATE", "TIMESTAMP"], [row])
  expect(await readBack()).toMatchObject({ rows: [row], types: Array.from(row, () => "VARCHAR") })
})

test("any text is read as it was written", async () => {
  const texts = fc.array(
    fc.oneof(
      fc.string({ unit: "binary", minLength: 1 }),
      fc.string({ unit: fc.constantFrom("_", "x", "0", "A", "\r", "\u0001", "<", "&", "😀"), minLength: 1 }),
    ),
    { minLength: 1, maxLength: 50 },
  )
  await fc.assert(
    fc.asyncProperty(texts, async (values) => {
      await write(
        ["VARCHAR"],
        values.map((value) => [value]),
      )
      expect((await readBack()).rows).toEqual(values.map((value) => [value]))
    }),
    { numRuns: 20 },
  )
})

test("a table without rows has its columns", async () => {
  await write(["BIGINT", "VARCHAR"])
  expect(await readBack()).toMatchObject({ columns: ["c0", "c1"], rows: [] })
})

test("a cell takes 32767 characters and not one more", async () => {
  await write(["VARCHAR"], [["x".repeat(32_767)]])
  expect((await readBack()).rows[0]?.[0]).toHaveLength(32_767)
  await expect(write(["VARCHAR"], [["x".repeat(32_768)]])).rejects.toThrow(
    "A2 would have 32768 characters; a cell of Excel has at most 32767",
  )
})

test("rows that cannot be read, and a place that cannot be written, are errors", async () => {
  const columns = [{ name: "text", type: "VARCHAR" }] as const
  await expect(writeExcel(path, columns, failing())).rejects.toThrow("no more rows")
  const nowhere = join(folder, "nowhere", "out.xlsx")
  await expect(writeExcel(nowhere, columns, fromPages([[["a"]]]))).rejects.toThrow("ENOENT")
  expect(existsSync(nowhere)).toBe(false)
})

async function* failing(): AsyncGenerator<readonly Row[]> {
  yield [["a"]]
  throw new Error("no more rows")
}
