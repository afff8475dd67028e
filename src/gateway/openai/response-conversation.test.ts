/** What a connection remembers of its conversations is bounded. */
import { expect, test } from "vitest"
import { ConnectionMemory } from "./response-conversation.ts"
import type { KnownItem } from "./response-store.ts"

const itemOf = (characters: number): KnownItem => ({
  id: "",
  item: { type: "message", role: "user", content: "x".repeat(characters) },
})
const overhead = JSON.stringify(itemOf(0)).length
const mebibyte = 1024 * 1024

test("the 64 latest responses are remembered, and not one more", () => {
  const memory = new ConnectionMemory(() => true)
  for (let number = 0; number <= 64; number++) memory.remember(`r${number}`, [itemOf(1)])
  expect([memory.recall("r0"), memory.recall("r1")]).toEqual([null, [itemOf(1)]])
})

test("conversations of 16 MiB together are remembered; with one character more the oldest is forgotten", () => {
  const memory = new ConnectionMemory(() => true)
  const half = itemOf(8 * mebibyte - overhead)
  memory.remember("first", [itemOf(8 * mebibyte - overhead)])
  memory.remember("second", [half])
  expect(memory.recall("first")).not.toBeNull()
  memory.remember("third", [itemOf(1)])
  expect([memory.recall("first"), memory.recall("second")]).toEqual([null, [half]])
})

test("a conversation that grows without being answered is forgotten once it is too long", () => {
  const memory = new ConnectionMemory(() => true)
  const long = [itemOf(8 * mebibyte), itemOf(8 * mebibyte)]
  memory.remember("r", long)
  expect(memory.recall("r")).toBeNull()
  memory.remember("next", [itemOf(1)])
  expect(memory.recall("next")).not.toBeNull()
})

test("what conversations share counts once", () => {
  const memory = new ConnectionMemory(() => true)
  const long = itemOf(12 * mebibyte)
  memory.remember("first", [long])
  memory.remember("second", [long, itemOf(1)])
  memory.invalidate("first")
  expect([memory.recall("first"), memory.recall("second")]).toEqual([null, [long, itemOf(1)]])
})

test("where connections together have no room the oldest is forgotten, and what is forgotten is given back", () => {
  let held = 0
  const memory = new ConnectionMemory((characters) => {
    if (characters > 2 * mebibyte) return false
    held = characters
    return true
  })
  memory.remember("first", [itemOf(mebibyte)])
  memory.remember("second", [itemOf(mebibyte)])
  expect([memory.recall("first"), memory.recall("second")?.length]).toEqual([null, 1])
  memory.remember("third", [itemOf(3 * mebibyte)])
  expect([memory.recall("second"), memory.recall("third"), held]).toEqual([null, null, 0])
})
