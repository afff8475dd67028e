/** What a server has written, for tests that look for what must not be there. */
import { readFileSync, readdirSync } from "node:fs"
import { join } from "node:path"

/** The bytes of every file under a folder. The server works there meanwhile: what has gone when it is read is left out. */
export function bytesUnder(folder: string): Buffer[] {
  const entries = ifThere(() => readdirSync(folder, { withFileTypes: true })) ?? []
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return bytesUnder(path)
    return (entry.isFile() && ifThere(() => readFileSync(path))) || []
  })
}

function ifThere<Result>(read: () => Result): Result | null {
  try {
    return read()
  } catch (error) {
    // Errors of the file system have a code.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null
    throw error
  }
}
