import { getPriority } from "node:os"
import { afterAll, expect, test } from "vitest"
import { type Task, threads } from "./threads.ts"

const source = `import { getPriority } from "node:os"\nexport const priority = () => getPriority()`
const priorityTask: Task<null, number> = {
  module: `data:text/javascript,${encodeURIComponent(source)}`,
  name: "priority",
}

afterAll(async () => await threads.close())

test.runIf(process.platform === "linux")("large work yields to everything else of its process", async () => {
  const before = getPriority()
  const own = await threads.run("org", priorityTask, null, new AbortController().signal)
  expect(own).toBe(Math.max(5, before))
  expect(getPriority()).toBe(before)
})
