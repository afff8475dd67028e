/** Where the built console lies. */
import { join } from "node:path"

export const consoleDirectory = join(import.meta.dirname, "..", "..", "console", "dist")
