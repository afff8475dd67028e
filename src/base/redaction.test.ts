/** Patterns replace what they match, whatever they are, in time that grows with the text and nothing else. */
import fc from "fast-check"
import { expect, test } from "vitest"
import { createRedactor, explainPattern } from "./redaction.ts"

const redact = (patterns: readonly [string, string][], text: string) =>
  createRedactor(patterns.map(([name, pattern]) => ({ name, pattern }))).redact(text)

test("what matches is replaced by its name, and counted", () => {
  expect(redact([["email", "[\\w.]+@[\\w.]+"]], "to ann@a.example and bob@b.example")).toEqual({
    text: "to [email] and [email]",
    count: 2,
  })
  expect(redact([["email", "@"]], "nothing here")).toEqual({ text: "nothing here", count: 0 })
})

test("a pattern sees the text as it came, not what another has put in", () => {
  expect(redact([["email", "a+"], ["letter", "e"]], "aaa e").text).toBe("[email] [letter]") // prettier-ignore
})

test("passages that overlap or touch become one, so that nothing between them shows", () => {
  expect(redact([["a", "abc"], ["b", "bcd"]], "xabcdx")).toEqual({ text: "x[a]x", count: 1 }) // prettier-ignore
  expect(redact([["digit", "\\d"]], "1234 5")).toEqual({ text: "[digit] [digit]", count: 2 })
})

test("an empty match replaces nothing", () => {
  expect(redact([["x", "a*"]], "baab")).toEqual({ text: "b[x]b", count: 1 })
})

test.each([
  ["nested repetition", "(a+)+$"],
  ["alternatives of the same", "(a|a|a)*b"],
  ["a repetition that overlaps itself", "(a*)*(a*)*(a*)*c"],
  ["many optional letters", "(a?){100}a{100}b"],
])("%s, which takes a backtracking engine ages, is matched in linear time", (_, pattern) => {
  // 2^50000 steps for a backtracking engine: it would never come back.
  const text = "a".repeat(50_000)
  expect(redact([["x", pattern]], `${text}!`).text.endsWith("!")).toBe(true)
})

test.each([
  ["a backreference", "(a)\\1"],
  ["a lookahead", "a(?=b)"],
  ["a repetition of a repetition beyond the limit", "((a{100}){100}){100}"],
  ["a parenthesis too few", "(a"],
])("%s is refused with a reason", (_, pattern) => {
  expect(explainPattern(pattern)).toMatch(/\w/)
  expect(explainPattern("a+")).toBeNull()
})

test("patterns that match all over are refused at their limit, not carried out", () => {
  const redactor = createRedactor([{ name: "x", pattern: "a" }])
  expect(redactor.redact("ab".repeat(100_000)).count).toBe(100_000)
  expect(() => redactor.redact("ab".repeat(100_001))).toThrow(RangeError)
})

test("no character of a match is left, wherever it stands", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }), (before, after) => {
      const { text } = redact([["secret", "s3cr3t-[a-z]+"]], `${before} s3cr3t-value ${after}`)
      expect(text).not.toContain("s3cr3t-value")
      expect(text).toContain("[secret]")
    }),
  )
})
