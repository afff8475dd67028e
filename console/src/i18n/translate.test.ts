import { afterEach, expect, test } from "vitest"
import { setLanguage, t, tn } from "./translate.ts"

afterEach(() => setLanguage("en", {}))

test("without a catalog the English text is shown, with its values", () => {
  expect(t("Delete {name}?", { name: "key" })).toBe("Delete key?")
  expect([0, 1, 1200].map((many) => tn(many, "{count} row", "{count} rows"))).toEqual([
    "0 rows",
    "1 row",
    "1,200 rows",
  ])
})

test("a value is put in as it is, whatever it looks like", () => {
  expect(t("{a} and {b}", { a: "{b}", b: "$&" })).toBe("{b} and $&")
})

test("a translation may order the values as it likes", () => {
  setLanguage("de", { "{done} of {total}": "Von {total} sind {done} fertig" })
  expect(t("{done} of {total}", { done: 1, total: 2 })).toBe("Von 2 sind 1 fertig")
})

test("what the catalog lacks stays English", () => {
  setLanguage("de", { Save: "Speichern" })
  expect([t("Save"), t("Cancel"), tn(1, "{count} row", "{count} rows")]).toEqual([
    "Speichern",
    "Cancel",
    "1 row",
  ])
})

test("a plural has the form and the digits of its language", () => {
  setLanguage("fr", { "{count} rows": { one: "{count} ligne", other: "{count} lignes" } })
  expect([0, 1, 2, 1200].map((many) => tn(many, "{count} row", "{count} rows"))).toEqual([
    "0 ligne",
    "1 ligne",
    "2 lignes",
    "1\u202F200 lignes",
  ])
  setLanguage("ja", { "{count} rows": { other: "{count} 行" } })
  expect(tn(1, "{count} row", "{count} rows")).toBe("1 行")
})

test("the form for all others stands in for one that the catalog lacks", () => {
  setLanguage("fr", { "{count} rows": { one: "{count} ligne", other: "{count} lignes" } })
  expect(tn(1_000_000, "{count} row", "{count} rows")).toBe("1\u202F000\u202F000 lignes")
})
