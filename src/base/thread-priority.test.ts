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
