/** Models of this machine that come and go, with real processes. */
import { expect, test } from "vitest"
import { ask, openEngines, swapModels, swapped } from "./model-swaps.ts"

test("engine.memory_budget_mib: five models of which three fit are swapped without an error, and no process stays", async () => {
  await swapModels(5, 5)
})

test("engine.idle_unload_s: a model that is idle for so long leaves, and answers the same when it is used again", async () => {
  const engines = openEngines({ UMPIRE_ENGINE_IDLE_UNLOAD_S: "1" })
  const model = await swapped(0)
  const answer = await ask(engines, model)
  await expect.poll(() => engines.report()[0]?.state).toBe("unloaded")
  expect(await ask(engines, model)).toBe(answer)
  expect(engines.report()[0]).toMatchObject({ loads: 2 })
  await engines.close()
})
