import fc from "fast-check"
import { expect, test } from "vitest"
import { GrammarPath, type Rule } from "./grammar.ts"
import { schemaGrammar } from "./json-schema.ts"
import { patternRule } from "./pattern.ts"

/** Any text of a rule, by choices that the numbers make. */
function derive(rule: Rule, choose: (below: number) => number): string {
  switch (rule.kind) {
    case "text":
      return rule.text
    case "set": {
      const [low, high] = rule.ranges[choose(rule.ranges.length)] ?? [0, 0]
      return String.fromCodePoint(low + choose(high - low + 1))
    }
    case "all":
      return rule.parts.map((part) => derive(part, choose)).join("")
    case "any":
      return derive(rule.options[choose(rule.options.length)] ?? rule, choose)
    case "repeat":
      return Array.from({ length: rule.min + choose(rule.max - rule.min + 1) }, () =>
        derive(rule.rule, choose),
      ).join("")
    case "name":
      throw new Error("a pattern has no names")
  }
}

test.each([
  "^[a-z]+$",
  "^\\d{3}-\\d{4}$",
  "^(red|green|blue)$",
  "^(?:[A-Z]{2}){1,3}$",
  "^(?<year>\\d{4})-(?<month>0[1-9]|1[0-2])$",
  "ab?c*",
  "^a.c$|^x$",
  "^[^a-z\\s]{2,}?$",
  '^"quoted\\\\"$',
  "^[\\w.+-]+@[\\w-]+\\.[a-z]{2,}$",
  "^#[0-9a-fA-F]{6}$",
  "^é\\t\\/$",
  "^$",
  "",
])("every text written for %j matches it", (pattern) => {
  const found = patternRule(pattern)
  if (!found) throw new Error("it was refused")
  fc.assert(
    fc.property(fc.infiniteStream(fc.nat()), (numbers) => {
      const choose = (below: number): number => (numbers.next().value ?? 0) % below
      const written = JSON.parse(`"${derive(found.rule, choose)}"`) as string
      expect(written).toMatch(new RegExp(pattern, "u"))
      const { length } = Array.from(written)
      expect(length >= found.least && length <= found.most).toBe(true)
    }),
    { numRuns: 200 },
  )
})

test.each([
  "(?=a)b",
  "(?!a)",
  "(?<=a)b",
  "(a)\\1",
  "\\bword\\b",
  "\\p{L}+",
  "a^b",
  "a$b",
  "(",
  "^[é]$",
  "a{2000}",
])("%j has no grammar", (pattern) => {
  expect(patternRule(pattern)).toBeNull()
})

test.each([
  [{ pattern: "^[a-z]{3}$", maxLength: 3 }, true],
  [{ pattern: "^[a-z]{3}$", maxLength: 2 }, false],
  [{ pattern: "^[a-z]{3}$", minLength: 4 }, false],
  [{ pattern: "^[a-z]{3}$", format: "date" }, false],
])("a strict schema with %j is taken: %s", (keywords, taken) => {
  const build = () => schemaGrammar({ type: "string", ...keywords }, { strict: true, param: "schema" })
  if (taken) expect(new GrammarPath(build()).shortestEnd()).toBe('"aaa"')
  else expect(build).toThrow(/pattern/)
})
