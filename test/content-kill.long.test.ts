/** The full count of kills. */
import { test } from "vitest"
import { killWhileKeeping } from "./content-kill.ts"

test("kill -9 at 50 random moments under load: the content of every acknowledged answer is stored, redacted", async () => {
  await killWhileKeeping(50)
}, 1_800_000)
