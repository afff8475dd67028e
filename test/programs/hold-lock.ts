/** Locks the directory it is given, says its process number or why it cannot, and waits to be killed. */
import { lockDirectory } from "../../src/store/directory-lock.ts"

const [directory] = process.argv.slice(2)
if (directory === undefined) throw new Error("Cannot start: name the directory")

try {
  await lockDirectory(directory)
  console.log(process.pid)
  setInterval(() => undefined, 60_000)
} catch (error) {
  console.log(error instanceof Error ? `${error.name}: ${error.message}` : String(error))
}
