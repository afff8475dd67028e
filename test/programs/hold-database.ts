/** Opens the embedded database in the directory it is given, writes a row when asked, says what happened, and waits. */
import { createInterface } from "node:readline"
import { openPglite } from "../../src/store/pglite.ts"

const [directory] = process.argv.slice(2)
if (directory === undefined) throw new Error("Cannot start: name the directory")

try {
  const database = await openPglite({ directory })
  await database.script("CREATE TABLE IF NOT EXISTS written (n int)")
  console.log("open")
  for await (const line of createInterface({ input: process.stdin })) {
    await database.query("INSERT INTO written VALUES ($1)", [Number(line)])
    console.log(`wrote ${line}`)
  }
} catch (error) {
  console.log(error instanceof Error ? `${error.name}: ${error.message}` : String(error))
}
