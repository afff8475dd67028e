import { mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gunzipSync, gzipSync } from "node:zlib"
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

/** A backup whose text was changed, compressed again. */
async function changed(change: (text: string) => string): Promise<string> {
  const file = join(mkdtempSync(join(tmpdir(), "umpire-archive-")), "a.backup")
  await writeArchive(file, header, async (writer) => {
    await writer.rows("ledger", ['{"ticks":100}'])
    await writer.piece("journal/1", Buffer.from("x"))
  })
  writeFileSync(file, gzipSync(change(gunzipSync(readFileSync(file)).toString())))
  return file
}

const read = async (file: string): Promise<void> => await readArchive(file, async () => undefined)

test("a backup in which one digit of a row was changed is refused", async () => {
  await read(await changed((text) => text))
  const file = await changed((text) => text.replace('"ticks":100', '"ticks":900'))
  await expect(read(file)).rejects.toThrow("its checksum is wrong")
})

test("a backup with a line behind its end is refused", async () => {
  const file = await changed((text) => `${text}{"table":"ledger","rows":[]}\n`)
  await expect(read(file)).rejects.toThrow("something follows its end")
})

test("a backup of before there were checksums is read", async () => {
  await read(await changed((text) => text.replace(/,"sha256":"\w+"/, "")))
})
