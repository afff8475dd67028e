/** Starts something that closes with a word, and then fails in the way that the argument names, handled by nobody. */
import { createLog } from "../../src/base/log.ts"
import { runUntilStopped } from "../../src/cli/run-until-stopped.ts"

const failures: Readonly<Record<string, () => unknown>> = {
  rejection: () => Promise.reject(new Error("on purpose")),
  exception: () =>
    setImmediate(() => {
      throw new Error("on purpose")
    }),
}
const fail = failures[process.argv[2] ?? ""]
const alive = setInterval(() => undefined, 1_000)
process.exitCode = await runUntilStopped(
  createLog("info"),
  async () => {
    if (process.argv[3] === "start") {
      fail?.()
      return await new Promise<never>(() => undefined)
    }
    return {
      close: async () => {
        clearInterval(alive)
        console.log("closed")
      },
    }
  },
  () => fail?.(),
)
