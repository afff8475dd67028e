import { test } from "vitest"
import { swapModels } from "./model-swaps.ts"

test("fifty models of which three fit: 200 swaps without an error, a process or memory that stays", async () => {
  const loadsMs = await swapModels(50, 200)
  const sorted = loadsMs.toSorted((a, b) => a - b)
  console.log(`loads: median ${sorted[100]} ms, the slowest ${sorted.at(-1)} ms`)
})
