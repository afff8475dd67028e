import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  JsonError,
  JsonNumber,
  JsonObject,
  type JsonValue,
  depthOf,
  isList,
  jsonDepthMax,
  printJson,
  readJson,
} from "./json.ts"

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const read = (text: string): JsonValue => readJson(bytes(text))
const lists = (levels: number): string => "[".repeat(levels) + "]".repeat(levels)
const objects = (levels: number): string => '{"a":'.repeat(levels - 1) + "{}" + "}".repeat(levels - 1)
const reprint = (text: string): string => printJson(read(text))

describe("reading without loss", () => {
  it.each([
    '{"10":1,"9":2,"a":3}',
    '{"__proto__":{"constructor":1},"toString":null}',
    '{"":""}',
    "[1.0,1e400,-0,0.1e+1,12345678901234567890,1E-7]",
    '["\\u0000","é","日本","😀"]',
    "[[],{},[{}],true,false,null]",
    '"text"',
    "0",
  ])("%s prints as it came", (text) => {
    expect(reprint(text)).toBe(text)
  })

  it("drops only the space between tokens", () => {
    expect(reprint(' \t\r\n{ "a b" : [ 1 , " x " ] , "c" : { } , "d":[ ] } \n')).toBe(
      '{"a b":[1," x "],"c":{},"d":[]}',
    )
  })

  it("reads escapes and prints them the short way", () => {
    expect(reprint('"\\u0041\\/\\n\\ud83d\\ude00\\"\\\\"')).toBe('"A/\\n😀\\"\\\\"')
  })

  it("finds every key of an object too large to search, and none that is not there", () => {
    const keys = Array.from({ length: 300 }, (_, at) => `k${at}`)
    const object = read(`{${keys.map((key, at) => `"${key}":${at}`).join(",")}}`) as JsonObject
    expect(object.size).toBe(300)
    expect(keys.map((key) => printJson(object.get(key) ?? null))).toEqual(keys.map((_, at) => String(at)))
    expect(object.get("k300")).toBeUndefined()
    expect(object.has("k0")).toBe(true)
  })

  it("does not find inherited names in an object", () => {
    const object = read('{"a":1}') as JsonObject
    expect(object.get("__proto__")).toBeUndefined()
    expect(object.get("constructor")).toBeUndefined()
    expect(object.has("toString")).toBe(false)
  })

  it("agrees with JSON.parse on what JSON.stringify writes", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, "\t"), (value, space) => {
        expect(JSON.parse(reprint(JSON.stringify(value, null, space)))).toEqual(
          JSON.parse(JSON.stringify(value)),
        )
      }),
    )
  })

  it("accepts and refuses the same short texts as JSON.parse, but for what would be lost", () => {
    const character = fc.constantFrom(...Array.from('{}[]",:\\u0019.eE+-tfn truefalsenull\n\u0001é'))
    fc.assert(
      fc.property(fc.string({ unit: character, maxLength: 12 }), (text) => {
        expect(outcome(() => read(text), isRefusedAsLossy)).toBe(outcome(() => JSON.parse(text)))
      }),
      { numRuns: 5000 },
    )
  })
})

describe("refusing", () => {
  it.each([
    ["nothing", "", "the end of the text stands where a value should begin (line 1, column 1)"],
    ["only space", " \n ", "the end of the text stands where a value should begin (line 2, column 2)"],
    ["NaN", "[NaN]", '"N" stands where a value should begin (line 1, column 2)'],
    ["Infinity", "-Infinity", '"I" stands where a digit should be (line 1, column 2)'],
    ["a leading zero", "01", '"1" follows the end of the value (line 1, column 2)'],
    ["a bare point", "1.", "the end of the text stands where a digit should be (line 1, column 3)"],
    ["an empty exponent", "1e+", "the end of the text stands where a digit should be (line 1, column 4)"],
    ["a second value", "{} {}", '"{" follows the end of the value (line 1, column 4)'],
    ["a trailing comma in a list", "[1,]", '"]" stands where a value should begin (line 1, column 4)'],
    ["a trailing comma in an object", '{"a":1,}', '"}" stands where a key should begin (line 1, column 8)'],
    ["single quotes", "{'a':1}", '"\'" stands where a key should begin (line 1, column 2)'],
    ["a comment", "{/**/}", '"/" stands where a key should begin (line 1, column 2)'],
    ["a missing colon", '{"a" 1}', '"1" stands where a colon should be (line 1, column 6)'],
    ["a list that stops", "[1", 'the end of the text stands where "," or "]" should be (line 1, column 3)'],
    [
      "an object that stops",
      '{"a":1',
      'the end of the text stands where "," or "}" should be (line 1, column 7)',
    ],
    ["a string that stops", '["ab', "the string that begins here does not end (line 1, column 2)"],
    [
      "a string that stops in an escape",
      '"ab\\',
      "the string that begins here does not end (line 1, column 1)",
    ],
    [
      "a raw control character",
      '"a\nb"',
      "a control character stands unescaped in a string (line 1, column 3)",
    ],
    ["a raw NUL", '"a\u0000"', "a control character stands unescaped in a string (line 1, column 3)"],
    [
      "an unknown escape",
      '"\\x41"',
      "the string that begins here holds an invalid escape or a control character (line 1, column 1)",
    ],
    [
      "a lone high surrogate",
      '"\\ud800"',
      "the string that begins here holds half of a surrogate pair (line 1, column 1)",
    ],
    [
      "a lone low surrogate",
      '["\\udc00a"]',
      "the string that begins here holds half of a surrogate pair (line 1, column 2)",
    ],
    [
      "a swapped surrogate pair",
      '"\\ude00\\ud83d"',
      "the string that begins here holds half of a surrogate pair (line 1, column 1)",
    ],
    [
      "a lone surrogate in a key",
      '{"\\ud800":1}',
      "the string that begins here holds half of a surrogate pair (line 1, column 2)",
    ],
    ["a key given twice", '{"a":1,"a":1}', 'the key "a" appears twice in one object (line 1, column 8)'],
    [
      "a key given twice in two spellings",
      '{"a":1,\n"\\u0061":1}',
      'the key "a" appears twice in one object (line 2, column 1)',
    ],
    [
      "__proto__ given twice",
      '{"__proto__":1,"__proto__":1}',
      'the key "__proto__" appears twice in one object (line 1, column 16)',
    ],
  ])("%s", (_, text, message) => {
    expect(() => read(text)).toThrow(new JsonError(message))
  })

  it("a key given twice among many", () => {
    const keys = Array.from({ length: 40 }, (_, at) => `"k${at}":0`)
    expect(() => read(`{${keys.join(",")},"k39":0}`)).toThrow('the key "k39" appears twice')
    expect(() => read(`{${keys.join(",")},"k0":0}`)).toThrow('the key "k0" appears twice')
  })

  it.each([
    ["a stray continuation byte", [0x22, 0x80, 0x22]],
    ["an overlong slash", [0x22, 0xc0, 0xaf, 0x22]],
    ["a surrogate in UTF-8", [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ["a character cut in half", [0x22, 0xc3]],
    ["UTF-16", [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
  ])("bytes that are not UTF-8: %s", (_, raw) => {
    expect(() => readJson(Uint8Array.from(raw))).toThrow(new JsonError("it is not valid UTF-8"))
  })

  it("a byte order mark", () => {
    expect(() => readJson(Uint8Array.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]))).toThrow("byte order mark")
  })
})

describe("depth", () => {
  it("64 levels are read and a 65th is refused, of lists and of objects", () => {
    expect(reprint(lists(jsonDepthMax))).toBe(lists(64))
    expect(reprint(objects(64))).toBe(objects(64))
    expect(() => read(lists(65))).toThrow("it is nested more than 64 levels deep (line 1, column 65)")
    expect(() => read(objects(65))).toThrow("it is nested more than 64 levels deep")
  })

  it("the caller's bound replaces the usual one", () => {
    expect(printJson(readJson(bytes(lists(66)), 66))).toBe(lists(66))
    expect(() => readJson(bytes(lists(3)), 2)).toThrow("more than 2 levels")
  })

  it("a million open brackets are refused without being followed", () => {
    expect(() => read("[".repeat(1_000_000))).toThrow("more than 64 levels")
  })

  it.each([
    ["[]", 1],
    ['["[[[", {}]', 2],
    ['{"a":[1,{"b":2}],"c":[]}', 3],
  ])("%s is %i deep", (text, depth) => {
    expect(depthOf(read(text))).toBe(depth)
  })
})

describe("members", () => {
  it("of an object are found by key and keep their order", () => {
    const object = read(
      ' { "10" : 1 , "9":"\\"},", "__proto__":{"a":[]}, "\\u0061" :null,"b":true,"c":false }',
    ) as JsonObject
    expect(Array.from(object, ([key, value]) => [key, printJson(value)])).toEqual([
      ["10", "1"],
      ["9", '"\\"},"'],
      ["__proto__", '{"a":[]}'],
      ["a", "null"],
      ["b", "true"],
      ["c", "false"],
    ])
  })

  it("of a list come in order, whatever they hold", () => {
    const list = read('[ 1.0 , "\\\\" , [ "]" , [ ] ] , {"a" : "}"},-0 ]')
    expect(isList(list) ? list.map(printJson) : []).toEqual(["1.0", '"\\\\"', '["]",[]]', '{"a":"}"}', "-0"])
  })

  it("are those that JSON.parse finds", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, "\t"), (value, space) => {
        const expected: unknown = JSON.parse(JSON.stringify(value))
        expect(plain(read(JSON.stringify(value, null, space)))).toEqual(expected)
      }),
    )
  })
})

it("a number keeps its text and has no other value", () => {
  expect(read("1.50")).toEqual(new JsonNumber("1.50"))
})

/** The plain value, built from members alone. */
function plain(value: JsonValue): unknown {
  if (value instanceof JsonNumber) return Number(value.text)
  if (isList(value)) return value.map(plain)
  if (!(value instanceof JsonObject)) return value
  // Defines keys instead of assigning them, so that __proto__ is one of them.
  return Object.fromEntries(Array.from(value, ([key, member]) => [key, plain(member)]))
}

const isRefusedAsLossy = (error: unknown): boolean =>
  error instanceof JsonError && /appears twice|surrogate/.test(error.message)

function outcome(parse: () => unknown, forgiven: (error: unknown) => boolean = () => false): string {
  try {
    parse()
    return "read"
  } catch (error) {
    return forgiven(error) ? "read" : "refused"
  }
}
