import { expect, test } from "vitest"
import { compileRule, findRuleFlaw, ruleEvidenceLater } from "./evidence-rules.ts"

const isMet = (rule: string, evidence: string): boolean => compileRule(rule)(ruleEvidenceLater(evidence)())

const ticket = JSON.stringify({
  tier: "gold",
  amount: 120,
  share: 0.5,
  customer: { country: "DE", tags: ["vip", "new"] },
})

test.each([
  ['input.tier in ["gold", "enterprise"]', true],
  ['input.tier == "silver"', false],
  ["input.amount > 100", true],
  ["input.amount >= 120.5", false],
  ["input.share == 0.5", true],
  ['input.customer.country == "DE" && "vip" in input.customer.tags', true],
  ['has(input.customer) && input.customer.tags[0] == "vip"', true],
  ['text.contains("gold")', true],
  ['input.tier.upperAscii() == "GOLD"', true],
  ["size(input.customer.tags) == 2", true],
  // What fails is not met.
  ['input.nothing == "x"', false],
  ["input.tier > 5", false],
  ["input.amount / 0 == 1", false],
])("%s", (rule, met) => {
  expect(isMet(rule, ticket)).toBe(met)
})

test("lines are fields too, and text without any has none", () => {
  expect(isMet('input.Tier == "gold"', "Tier: gold\nHello there.")).toBe(true)
  expect(isMet('input["Ticket no"] == "7"', "Ticket no: 7")).toBe(true)
  expect(isMet('input.Tier == "gold"', "no fields here")).toBe(false)
  expect(isMet('input.tier == "gold"', '{"tier": broken')).toBe(false)
})

test.each([
  ['input.tier = "gold"', /./],
  ["size(text)", /not true or false/],
  ["1 + 2", /not true or false/],
  ['other == "x"', /no variable other/],
  ["input.tags.exists(t, t == 'x')", /loops/],
  ['text.matches("(a+)+$")', /matches cannot be used/],
  ['text.replace("a", text) == ""', /replace cannot be used/],
  ['[text].join("x") == ""', /join cannot be used/],
  ["{'a': 1} == {}", /maps/],
  [Array.from({ length: 9 }, () => "size(text) == 1").join(" || "), /more than 8 calls/],
  [`${"text + ".repeat(9)}text == ""`, /more than 8 calls/],
])("the flaw of %s", (rule, flaw) => {
  expect(findRuleFlaw(rule)).toMatch(flaw)
})

test("texts and lists among the fields are cut, so that fifty rules read a bounded part", () => {
  const fields = { long: "x".repeat(9_000), many: Array.from({ length: 2_000 }, (_, at) => at), late: 1 }
  const met = [
    "size(input.long) == 8000",
    "size(input.many) < 1000",
    "998 in input.many",
    "has(input.late)",
  ].map((rule) => isMet(rule, JSON.stringify(fields)))
  expect(met).toEqual([true, true, false, false])
  expect(isMet(Array.from({ length: 8 }, () => "size(text) > 0").join(" && "), "a text")).toBe(true)
})

test("evidence that is too long, too deep or no object has no fields, and harms nothing", () => {
  expect(isMet("input.a == 1", JSON.stringify({ a: 1, b: "x".repeat(70_000) }))).toBe(false)
  const deep = `${'{"a":'.repeat(50)}1${"}".repeat(50)}`
  expect(isMet("has(input.a)", deep)).toBe(true)
  expect(isMet("size(input) == 0", "[1, 2]")).toBe(true)
})
