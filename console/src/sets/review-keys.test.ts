import { expect, test } from "vitest"
import { actionOfKey } from "./review-keys.ts"

const option = (value: string | number | boolean) => ({ value, description: "" })
const yesNo = { kind: "predicate", options: [option("yes"), option("no")] } as const
const choice = {
  kind: "choice",
  options: Array.from({ length: 11 }, (_, n) => option(`option ${n + 1}`)),
} as const

test.each([
  ["y", yesNo, { kind: "label", label: "yes" }],
  ["n", yesNo, { kind: "label", label: "no" }],
  ["1", yesNo, null],
  ["1", choice, { kind: "label", label: "option 1" }],
  ["9", choice, { kind: "label", label: "option 9" }],
  ["0", choice, null],
  ["y", choice, null],
  ["s", choice, { kind: "skip" }],
  ["?", yesNo, { kind: "not_sure" }],
  ["u", undefined, { kind: "undo" }],
  ["s", undefined, null],
  ["", choice, null],
] as const)("the key %j with %j means %j", (key, item, action) => {
  expect(actionOfKey(key, item && { kind: item.kind, options: [...item.options] })).toEqual(action)
})
