import { test } from "vitest"
import { surviveOutage } from "./outage.ts"

test("without the database requests go on for the grace time, then fail clearly, and nothing is lost", async () => {
  await surviveOutage({ outageMs: 5_000, graceSeconds: 30 })
})
