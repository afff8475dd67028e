import { test } from "vitest"
import { surviveOutage } from "./outage.ts"

test("without the database for a minute requests go on, memory is level, and everything is applied after", async () => {
  await surviveOutage({ outageMs: 60_000, graceSeconds: 80 })
}, 600_000)
