import { mkdtempSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"
import { type BackupHeader, type BackupPart, backupFormat, readArchive, writeArchive } from "./archive.ts"

const header: BackupHeader = {
  format: backupFormat,
  version: "0",
  created_at: "2026-01-01T00:00:00Z",
  migrations: [1],
}

test("a row reads back as it was written, with every character that ends a line somewhere", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "umpire-archive-")), "a.backup")
  const row = { name: "a\u2028b\u2029c\u0085d\r\n\u000be" }
  await writeArchive(file, header, async (writer) => {
    await writer.rows("users", [JSON.stringify(row)])
    await writer.piece("journal/1", Buffer.from("x"))
  })
  const parts: BackupPart[] = []
  await readArchive(file, async (part) => void parts.push(part))
  expect(parts).toEqual([
    { table: "users", rows: [row] },
    { file: "journal/1", data: "eA==" },
  ])
})

test.runIf(process.platform !== "win32")(
  "only its owner can read a backup, whatever an interrupted one left behind",
  async () => {
    const file = join(mkdtempSync(join(tmpdir(), "umpire-archive-")), "a.backup")
    writeFileSync(`${file}.partial`, "", { mode: 0o644 })
    await writeArchive(file, header, async () => undefined)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  },
)
