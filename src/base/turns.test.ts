import { expect, test } from "vitest"
import { FairTurns } from "./turns.ts"

test("owners take turns: the one with the fewest running, then the one whose turn was longest ago", () => {
  const turns = new FairTurns()
  const order: (string | undefined)[] = []
  for (let at = 0; at < 4; at++) {
    const owner = turns.next(["a", "b"])
    order.push(owner)
    // What runs of the first one does not end.
    const end = turns.begin(owner ?? "")
    if (owner !== "a") end()
  }
  expect(order).toEqual(["a", "b", "b", "b"])
  expect(turns.next(["a", "b", "c"])).toBe("c")
})

test("an owner that runs its most is passed over until one of them ends", () => {
  const turns = new FairTurns(2)
  const ends = [turns.begin("a"), turns.begin("a")]
  expect(turns.next(["a"])).toBeUndefined()
  ends[0]?.()
  expect(turns.next(["a"])).toBe("a")
})
