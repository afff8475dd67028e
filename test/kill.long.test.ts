/** The full count of kills. */
import { test } from "vitest"
import { killUnderLoad } from "./kill.ts"

test("kill -9 at 100 random moments under load: every acknowledged answer is charged once, and nothing else is", async () => {
  await killUnderLoad(100)
}, 1_800_000)
