import { describe, expect, test } from "vitest"
import { piecesOf } from "./text-pieces.ts"

const longest = 16 * 1024

describe("pieces of a text", () => {
  test("a text with blanks is one piece, however long", () => {
    const text = "words and\nlines, ".repeat(10_000)
    expect(piecesOf(text)).toEqual([text])
  })

  test.each(["a", " ", "\n", "7", "漢"])(
    "%j goes on up to the limit, and is cut one past it",
    (character) => {
      expect(piecesOf(character.repeat(longest))).toHaveLength(1)
      expect(piecesOf(`${character.trim() === "" ? "x" : " "}${character.repeat(longest)}`)).toHaveLength(1)
      expect(piecesOf(character.repeat(longest + 1)).map(({ length }) => length)).toEqual([longest, 1])
    },
  )

  test("pieces make up the text, and none is longer than the limit", () => {
    const text = `start ${"x".repeat(100_000)} ${" ".repeat(50_000)}${"y<z".repeat(30_000)} end`
    const pieces = piecesOf(text)
    expect(pieces.join("")).toBe(text)
    for (const piece of pieces)
      for (const run of piece.split(/\s+/)) expect(run.length).toBeLessThanOrEqual(longest)
  })

  test("a character of two halves stays whole", () => {
    const text = `a${"👍".repeat(longest)}`
    const pieces = piecesOf(text)
    expect(pieces.length).toBeGreaterThan(1)
    expect(pieces.join("")).toBe(text)
    for (const piece of pieces) expect(piece.isWellFormed()).toBe(true)
  })

  test("the text of a special token stays whole", () => {
    const text = `${"a".repeat(longest - 4)}<|im_end|>${"b".repeat(longest)}`
    expect(piecesOf(text)[0]).toBe("a".repeat(longest - 4))
    expect(piecesOf(text)[1]?.startsWith("<|im_end|>")).toBe(true)
  })
})
