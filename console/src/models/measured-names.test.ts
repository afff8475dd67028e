import { expect, test } from "vitest"
import { aboutModels } from "../../../src/main/catalog.ts"
import { measuredNames } from "./measured-names.ts"

test("every figure that the server tells of its models has a name to translate", () => {
  const told = ["umpire-decide", "umpire-decide-small", "umpire-decide-multilingual"].flatMap(
    (sku) => aboutModels()(sku)?.measured.map(({ name }) => name) ?? [],
  )
  expect([...new Set(told)].toSorted()).toEqual(Object.keys(measuredNames).toSorted())
})
