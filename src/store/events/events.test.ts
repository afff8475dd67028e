import { execFileSync } from "node:child_process"
import { expect, test } from "vitest"
import { openTestEvents } from "../../../test/analytics-engines.ts"

const niceness = 15

test.runIf(process.platform === "linux")(
  "every thread of the analytics process gives way to the gateway",
  async () => {
    const kept = await openTestEvents("duckdb")
    await kept.events.ask("holdings", null)
    const listed = execFileSync("ps", ["-L", "-o", "nice=,args=", "--ppid", String(process.pid)], {
      encoding: "utf8",
    })
    const threads = listed.split("\n").filter((line) => line.includes("events/child.ts"))
    expect(threads.length).toBeGreaterThan(1)
    for (const line of threads) expect(Number.parseInt(line, 10), line).toBeGreaterThanOrEqual(niceness)
    await kept.close()
  },
)
