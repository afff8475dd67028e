/**
 * Loaded into the server before the program: on SIGUSR2, writes how much processor time the longest turn of the main thread's
 * event loop took since the last time. Unlike the stall, it does not depend on what else the machine does.
 */
import { writeFileSync } from "node:fs"
import { isMainThread } from "node:worker_threads"

const file = process.env["LOOP_MONITOR_FILE"]
const pollIntervalMs = 5

// Engines are processes of their own, and have the same environment.
if (file !== undefined && isMainThread && process.argv.includes("serve")) {
  let longestMs = 0
  let before = process.threadCpuUsage()
  setInterval(() => {
    const now = process.threadCpuUsage()
    longestMs = Math.max(longestMs, (now.user + now.system - before.user - before.system) / 1000)
    before = now
  }, pollIntervalMs).unref()
  process.on("SIGUSR2", () => {
    writeFileSync(file, `${longestMs}\n`)
    longestMs = 0
  })
}
