/** The key file of kept content. */
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { loadConfig } from "../base/config.ts"
import { openContentCipher } from "./content.ts"

let directory: string
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), "umpire-content-key-"))))
afterEach(() => rmSync(directory, { recursive: true }))

const open = async (hasContent = false, environment: Record<string, string> = {}) => {
  const config = loadConfig({ UMPIRE_DATA_DIR: directory, ...environment }, directory)
  return await openContentCipher(config, async () => hasContent)
}
const place = { organizationId: "org_1", seqId: "seq_1" }

test("a key file that a killed start left empty is written again, and then stays", async () => {
  const path = join(directory, "content.key")
  writeFileSync(path, "")
  const sealed = (await open()).seal(place, "kept")
  expect((await open()).open(place, sealed)).toBe("kept")
  expect(readFileSync(path, "utf8").trim()).toHaveLength(44)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readdirSync(directory)).toEqual(["content.key"])
})

test("without its key file an installation that has content does not start, unless it is given another key", async () => {
  await expect(open(true)).rejects.toThrow(/content\.key is missing, and the database holds content/)
  expect(readdirSync(directory)).toEqual([])
  const keys = Buffer.alloc(32, 1).toString("base64")
  expect((await open(true, { UMPIRE_CONTENT_KEYS: keys })).isAvailable).toBe(true)
  // A key that is there opens whatever there is.
  const sealed = (await open()).seal(place, "kept")
  expect((await open(true)).open(place, sealed)).toBe("kept")
})

test("a key file with half a key is refused: another key would not open what it encrypted", async () => {
  writeFileSync(join(directory, "content.key"), Buffer.alloc(16, 1).toString("base64"))
  await expect(open()).rejects.toThrow(/it is not 32 bytes/)
})
