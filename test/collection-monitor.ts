/** Loaded into a server before the program: on SIGUSR2, writes how many full garbage collections the main thread has made. */
import { writeFileSync } from "node:fs"
import { constants, PerformanceObserver } from "node:perf_hooks"
import { isMainThread } from "node:worker_threads"

const file = process.env["COLLECTION_MONITOR_FILE"]

// Engines are processes of their own, and have the same environment.
if (file !== undefined && isMainThread && process.argv.includes("serve")) {
  let collections = 0
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind } = (entry as unknown as { detail: { kind: number } }).detail
      if (kind === constants.NODE_PERFORMANCE_GC_MAJOR) collections++
    }
  }).observe({ entryTypes: ["gc"] })
  process.on("SIGUSR2", () => writeFileSync(file, `${collections}\n`))
}
