import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { eld } from "eld/extrasmall"
import fc from "fast-check"
import { describe, expect, it, test } from "vitest"
import { knownLanguages, languageTags, unknownLanguage } from "../contract/language.ts"
import { detectLanguage } from "./language.ts"

const banks = join(import.meta.dirname, "..", "..", "model", "banks", "languages")
const bankLanguages = readdirSync(banks).map((file) => file.slice(0, 2))

/** The first text of each row of a bank. */
const textsIn = (language: string): string[] =>
  readFileSync(join(banks, `${language}.jsonl`), "utf8")
    .trim()
    .split("\n")
    // True: every row of a bank has texts.
    .map((row) => (JSON.parse(row) as { texts: string[] }).texts[0] ?? "")

test("the tags of the contract are the languages that the library knows", () => {
  expect([...knownLanguages]).toEqual(Object.values(eld.info().Languages))
})

test.each(bankLanguages)("texts of the bank %s are found to be in that language", async (language) => {
  const found = await Promise.all(textsIn(language).map(detectLanguage))
  const right = found.filter((one) => one === language).length
  const wrong = found.filter((one) => one !== language && one !== unknownLanguage)
  expect(right / found.length).toBeGreaterThan(0.95)
  expect(wrong.length / found.length).toBeLessThan(0.02)
})

describe("a language is found", () => {
  it.each([
    ["de", "Die Lieferung ist noch nicht da und ich möchte mein Geld zurück."],
    ["fr", "Je voudrais un remboursement, la commande est arrivée cassée."],
    ["es", "El pedido no llegó y quiero que me devuelvan el dinero."],
    ["nl", "De bestelling is niet aangekomen en ik wil een terugbetaling van het bedrag."],
    ["ru", "Заказ не пришёл, верните деньги."],
    ["ja", "注文した商品がまだ届きません。"],
    ["ko", "안녕하세요"],
    ["en", "The parcel never came and I want my money back."],
    ["en", "where is my order"],
    ["en", "Our hotel in La Rochelle, Le Champlain, was lovely and the staff at the desk were kind."],
  ])("%s: %s", async (language, text) => {
    expect(await detectLanguage(text)).toBe(language)
  })
})

describe("unsure is unknown", () => {
  it.each([
    "",
    " ",
    "ok",
    "refund",
    "password reset",
    "INV-2231 / 44.90 EUR",
    "https://example.com/the/way/of/the/world?is=this",
    "1234567890",
    '{"id": 4, "note": "Sofia de la Cruz called from Los Angeles about the order"}',
    "😀😀😀",
    "\u200b\u200b\u200b",
  ])("%j", async (text) => {
    expect(await detectLanguage(text)).toBe(unknownLanguage)
  })
})

test("the end of the first 2,000 characters counts, and nothing behind them", async () => {
  const english = "The parcel never came and I want my money back. "
  const german = "Die Lieferung ist noch nicht da und ich möchte mein Geld zurück. "
  const beginning = english.repeat(3)
  expect(await detectLanguage(beginning + german.repeat(40))).toBe("de")
  expect(await detectLanguage(english.repeat(50).slice(0, 2_000) + german.repeat(400))).toBe("en")
})

test("marks of direction, of no width and half pairs change nothing", async () => {
  const german = "Die Lieferung ist noch nicht da und ich möchte mein Geld zurück."
  expect(await detectLanguage(`\u202e\u2066${german}\u2069\ud800`)).toBe("de")
  expect(await detectLanguage(`\ufeff${german}\udfff`)).toBe("de")
})

test("every text has one of the tags", async () => {
  const unit = fc
    .constantFrom("binary", "grapheme", "grapheme-ascii")
    .chain((one) => fc.string({ unit: one, maxLength: 400 }))
  const halves = fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 300 })
    .map((codes) => String.fromCharCode(...codes))
  await fc.assert(
    fc.asyncProperty(fc.oneof(unit, halves), async (text) =>
      languageTags.includes(await detectLanguage(text)),
    ),
  )
})
