import { expect, test } from "vitest"
import { Fault } from "./errors.ts"
import { bodyTags, mergeTags, readTags } from "./tags.ts"

const many = (count: number): string => Array.from({ length: count }, (_, index) => `k${index}=v`).join(",")

test.each<[string, string, Record<string, string>]>([
  ["an empty header", " ", {}],
  ["two tags", "team=ops,job=42", { team: "ops", job: "42" }],
  ["spaces around tags", " team = ops , job=42 ", { team: "ops", job: "42" }],
  ["a value with an equals sign", "query=a=b", { query: "a=b" }],
  ["percent-encoded text", "city=S%C3%A3o%20Paulo%2C%20BR", { city: "São Paulo, BR" }],
  ["a key of 64 characters", `${"k".repeat(64)}=v`, { ["k".repeat(64)]: "v" }],
  ["a value of 128 characters", `k=${"%F0%9F%98%80".repeat(128)}`, { k: "\u{1F600}".repeat(128) }],
  ["a key that objects have", "constructor=x", { constructor: "x" }],
])("%s", (_name, header, tags) => expect(readTags(header)).toEqual(tags))

test("a tag may be called as the prototype is", () => {
  expect(Object.entries(readTags("__proto__=x"))).toEqual([["__proto__", "x"]])
})

test("16 tags are read, and 17 are refused", () => {
  expect(Object.keys(readTags(many(16)))).toHaveLength(16)
  expect(() => readTags(many(17))).toThrow("at most 16 tags")
})

test.each([
  ["no equals sign", "team", "key=value"],
  ["nothing between commas", "a=1,,b=2", "key=value"],
  ["no key", "=v", "1 to 64"],
  ["a key of 65 characters", `${"k".repeat(65)}=v`, "1 to 64"],
  ["a key with a space", "my team=v", "1 to 64"],
  ["no value", "team=", "1 to 128"],
  ["a value of 129 characters", `k=${"v".repeat(129)}`, "1 to 128"],
  ["a control character", "k=a%0Ab", "1 to 128"],
  ["text that is not UTF-8", "k=%FF", "UTF-8"],
  ["a key twice", "k=1,k=2", "twice"],
])("%s is refused with the rule", (_name, header, rule) => {
  expect(() => readTags(header)).toThrow(Fault)
  expect(() => readTags(header)).toThrow(rule)
})

test("metadata and user of a body become tags, cut to what tags may be", () => {
  const metadata = { "my key": "v", long: "\u{1F600}".repeat(300), empty: "", "line\n": "a\nb" }
  expect(bodyTags({ metadata, user: "ann" })).toEqual({
    my_key: "v",
    long: "\u{1F600}".repeat(128),
    line_: "a b",
    user: "ann",
  })
  expect(bodyTags({})).toEqual({})
  expect(bodyTags({ metadata: null, user: null })).toEqual({})
})

test("the tags that come first win, and what is more than 16 is left out", () => {
  expect(mergeTags({ team: "header" }, { team: "body", user: "ann" })).toEqual({
    team: "header",
    user: "ann",
  })
  expect(Object.keys(mergeTags(readTags(many(16)), { user: "ann" }))).not.toContain("user")
})
