/** How migrations are read from their folder; how they are applied is in the conformance suite. */
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { expect, onTestFinished, test } from "vitest"
import { readMigrations } from "./migrate.ts"

async function givenFolder(names: readonly string[]): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), "umpire-migrations-"))
  onTestFinished(() => rm(folder, { recursive: true }))
  for (const name of names) await writeFile(join(folder, name), "SELECT 1")
  return pathToFileURL(`${folder}/`)
}

test("migrations come in the order of their numbers, gaps allowed, other files left out", async () => {
  const folder = await givenFolder(["0020-late.sql", "0001-early.sql", "README.md"])
  expect((await readMigrations(folder)).map(({ version, name }) => [version, name])).toEqual([
    [1, "0001-early"],
    [20, "0020-late"],
  ])
})

test("two migrations with one number are refused", async () => {
  const folder = await givenFolder(["0001-a.sql", "0002-b.sql", "0002-c.sql"])
  await expect(readMigrations(folder)).rejects.toThrow("0002-c has the number of another")
})

test("a migration whose name has no number is refused with the form that would work", async () => {
  await expect(readMigrations(await givenFolder(["fix.sql"]))).rejects.toThrow("0001-what-it-makes.sql")
})

test("the checksum is of the text, so that one changed letter shows", async () => {
  const folder = await givenFolder(["0001-a.sql"])
  const [before] = await readMigrations(folder)
  await writeFile(new URL("0001-a.sql", folder), "SELECT 2")
  const [after] = await readMigrations(folder)
  expect(after?.checksum).not.toBe(before?.checksum)
})
