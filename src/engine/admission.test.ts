import { expect, test } from "vitest"
import { begin, measure } from "./engine.ts"

test("work is measured without being run, and has ended when its size is known", async () => {
  const seen: string[] = []
  const size = await measure<number>(async (admit) => {
    try {
      await admit(7)
      seen.push("run")
    } finally {
      seen.push("ended")
    }
  })
  expect([size, seen]).toEqual([7, ["ended"]])
})

test("work that fails before its size is known cannot be measured", async () => {
  await expect(measure<number>(async () => await Promise.reject(new Error("too long")))).rejects.toThrow(
    "too long",
  )
})

test("events that were begun come whole, and leaving them ends their source", async () => {
  const seen: string[] = []
  async function* source(): AsyncGenerator<string> {
    try {
      for (const event of ["a", "b"]) {
        seen.push(event)
        yield event
      }
    } finally {
      seen.push("ended")
    }
  }
  const read: string[] = []
  for await (const event of begin(source()).events) read.push(event)
  expect([read, seen]).toEqual([
    ["a", "b"],
    ["a", "b", "ended"],
  ])
  seen.length = 0
  const left = begin(source())
  await left.first
  await left.events.return?.()
  expect(seen).toEqual(["a", "ended"])
})
