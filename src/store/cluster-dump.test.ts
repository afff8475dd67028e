/** The dump of a new cluster, as the package carries it, becomes a cluster on the disk. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { PGlite } from "@electric-sql/pglite"
import { expect, test } from "vitest"
import { prepareEmptyDirectory } from "../../test/database.ts"
import { unpackCluster } from "./cluster-dump.ts"
import { openPglite } from "./pglite.ts"

test("what is unpacked opens, and has what the dumped cluster had", async () => {
  const folder = mkdtempSync(join(tmpdir(), "umpire-dump-"))
  const original = join(folder, "original")
  await prepareEmptyDirectory(original)
  const postgres = await PGlite.create(join(original, "postgres"))
  await postgres.exec("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)")
  writeFileSync(join(folder, "dump"), await (await postgres.dumpDataDir("gzip")).bytes())
  await postgres.close()

  const copy = join(folder, "copy")
  unpackCluster(join(folder, "dump"), join(copy, "postgres"))
  expect(existsSync(join(copy, "postgres.partial"))).toBe(false)
  const database = await openPglite({ directory: copy })
  expect(await database.query("SELECT n FROM kept")).toEqual([{ n: 7 }])
  await database.close()
  rmSync(folder, { recursive: true })
})
