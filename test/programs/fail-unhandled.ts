/**
 * Starts something that closes with a word, and then does what the argument names: fails without a handler, or is told to stop
 * and does not close, or closes and leaves something that runs.
 */
import { createLog } from "../../src/base/log.ts"
import { runUntilStopped } from "../../src/cli/run-until-stopped.ts"

const failures: Readonly<Record<string, () => unknown>> = {
  rejection: () => Promise.reject(new Error("on purpose")),
  exception: () =>
    setImmediate(() => {
      throw new Error("on purpose")
    }),
}
const stop = (): unknown => setImmediate(() => process.kill(process.pid, "SIGTERM"))
const fail = { stuck: stop, lingering: stop }[process.argv[2] ?? ""] ?? failures[process.argv[2] ?? ""]
const alive = setInterval(() => undefined, 1_000)
process.exitCode = await runUntilStopped(createLog("info"), {
  start: async () => {
    if (process.argv[3] === "start") {
      fail?.()
      return await new Promise<never>(() => undefined)
    }
    return {
      close: async () => {
        if (process.argv[2] === "stuck") await new Promise(() => undefined)
        if (process.argv[2] !== "lingering") clearInterval(alive)
        console.log("closed")
      },
    }
  },
  announce: () => fail?.(),
  closeMsMax: 500,
})
