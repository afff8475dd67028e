/** The SQL port and the repositories, on each database they can run on. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { prepareEmptyDirectory } from "../../test/database.ts"
import { emptyDatabase } from "../../test/postgres.ts"
import { afterAll, beforeAll, describe } from "vitest"
import { testSqlPort, type OpenTarget, type Target } from "../../test/store/conformance.ts"
import { openPglite } from "./pglite.ts"
import { openPostgres } from "./postgres.ts"
import { testRows } from "../../test/store/row-conformance.ts"
import { testRepositories } from "../../test/store/repository-conformance.ts"

const targets: readonly Target[] = [
  {
    name: "PGlite",
    async open() {
      const directory = await mkdtemp(join(tmpdir(), "umpire-store-"))
      await prepareEmptyDirectory(directory)
      const database = await openPglite({ directory })
      const close = async (): Promise<void> => {
        await database.close()
        await rm(directory, { recursive: true })
      }
      return { database, peer: database, close }
    },
  },
  {
    name: "PostgreSQL",
    async open() {
      const fresh = await emptyDatabase()
      const { url } = fresh
      const [database, peer] = await Promise.all([openPostgres({ url }), openPostgres({ url })])
      const close = async (): Promise<void> => {
        await Promise.all([database.close(), peer.close()])
        await fresh.drop()
      }
      return { database, peer, close }
    },
  },
]

for (const target of targets) {
  describe(target.name, () => {
    let opened: OpenTarget
    beforeAll(async () => {
      opened = await target.open()
    })
    afterAll(() => opened.close())

    testSqlPort(() => opened)
    testRows(() => opened)
    testRepositories(() => opened)
  })
}
