import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { afterEach, expect, test } from "vitest"

const program = join(import.meta.dirname, "../../test/programs/wait-for-stop.ts")
let child: ChildProcess | undefined
afterEach(() => void child?.kill("SIGKILL"))

/** Sends the signals, where there is a number after so long a pause since the first was heard; answers what it said and how it ended. */
async function stop(stopMs: number, signals: readonly (NodeJS.Signals | number)[]) {
  const started = spawn(process.execPath, [program, String(stopMs)], { stdio: ["ignore", "pipe", "inherit"] })
  child = started
  let said = ""
  started.stdout.setEncoding("utf8").on("data", (text: string) => (said += text))
  await expect.poll(() => said).toContain("ready")
  // With its output: after its exit alone some of that may still be on the way.
  const ended = once(started, "close")
  for (const step of signals) {
    if (typeof step !== "number") {
      started.kill(step)
      continue
    }
    await expect.poll(() => said).toContain("SIG")
    await wait(step)
  }
  const [code] = await ended
  return { said: said.trim().split("\n").slice(1), code }
}

test("a stop that comes twice at once, as from a group and its leader, is one stop", async () => {
  expect(await stop(300, ["SIGTERM", "SIGTERM"])).toEqual({
    said: ["SIGTERM", "stopped"],
    code: 0,
  })
})

test("a second wish to stop, later, is taken at its word", async () => {
  expect(await stop(60_000, ["SIGINT", 2_200, "SIGINT"])).toEqual({ said: ["SIGINT"], code: 130 })
})
