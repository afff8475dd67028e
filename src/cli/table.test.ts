import { expect, test } from "vitest"
import { columns } from "./table.ts"

const draw = columns<{ name: string; count: number }>({
  name: ({ name }) => name,
  count: ({ count }) => String(count),
})

test("records are drawn by columns, and where there are none that is said", () => {
  expect(draw([{ name: "refunds", count: 12 }])).toBe("name     count\n-------  -----\nrefunds  12\n")
  expect(draw([])).toBe("There are none.\n")
})
