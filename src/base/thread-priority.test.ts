import { execFileSync } from "node:child_process"
import { getPriority } from "node:os"
import { expect, test } from "vitest"

const program = `
  import { getPriority } from "node:os"
  import { lowerThreadPriority } from ${JSON.stringify(new URL("./thread-priority.ts", import.meta.url).href)}
  lowerThreadPriority()
  console.log(getPriority())
`

/** The niceness of a thread that was at this one before. */
const lowered = (niceness: number): number =>
  Number(
    execFileSync(
      "nice",
      ["-n", String(niceness - getPriority()), process.execPath, "--input-type=module", "-e", program],
      { encoding: "utf8" },
    ),
  )

test("a thread gets a lower priority on Linux, and nowhere a higher one", () => {
  const background = process.platform === "linux" ? 10 : getPriority()
  expect(lowered(getPriority())).toBe(Math.max(background, getPriority()))
  expect(lowered(19)).toBe(19)
})

const collectors = `
  import { readFileSync, readdirSync } from "node:fs"
  import { getPriority } from "node:os"
  import { lowerCollectorPriority } from ${JSON.stringify(new URL("./thread-priority.ts", import.meta.url).href)}
  lowerCollectorPriority()
  const name = (thread) => readFileSync("/proc/self/task/" + thread + "/comm", "utf8").trim()
  const threads = readdirSync("/proc/self/task").filter((thread) => name(thread) === "V8Worker")
  console.log(JSON.stringify([getPriority(), [...new Set(threads.map((thread) => getPriority(Number(thread))))]]))
`

const namesThreads = process.platform === "linux" && Number(process.versions.node.split(".")[0]) >= 23

test.runIf(namesThreads)("collecting garbage yields, the main thread does not", () => {
  const printed = execFileSync(process.execPath, ["--input-type=module", "-e", collectors], {
    encoding: "utf8",
  })
  expect(JSON.parse(printed)).toEqual([getPriority(), [Math.max(10, getPriority())]])
})
