/** The encoder's tokens are those of training: hard texts and their ids, as the trainer's tokenizer gave them. */
import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { readEncoderFile } from "../src/engine/encoder/read-model-file.ts"
import { WordPiece, textPieces } from "../src/engine/encoder/tokenizer.ts"
import { decisionModelFile } from "./models.ts"

const { vocabulary } = await readEncoderFile(decisionModelFile)
const words = new WordPiece(vocabulary)
const fixture = JSON.parse(
  readFileSync(new URL("encoder-wordpiece.json", import.meta.url), "utf8"),
) as readonly { text: string; ids: number[] }[]

test.each(fixture)("the tokens of $text", ({ text, ids }) => {
  expect(words.encode(text)).toEqual(ids)
})

test("the names of special tokens are plain text", () => {
  const { start, separator, unknown } = words.special
  expect([vocabulary[start], vocabulary[separator], vocabulary[unknown]]).toEqual(["[CLS]", "[SEP]", "[UNK]"])
  const ids = words.encode("[CLS] [SEP] [MASK] [PAD] [UNK] [sep]")
  expect(ids.map((id) => vocabulary[id] ?? "").filter((token) => /^\[.+\]$/.test(token))).toEqual([])
})

test("a text in pieces has the tokens of the whole", () => {
  const text = fixture.map(({ text: one }) => one).join("\n")
  for (const charactersMin of [1, 7, 100, text.length]) {
    const pieces = [...textPieces(text, charactersMin)]
    expect(pieces.join("")).toBe(text)
    expect(pieces.flatMap((piece) => words.encode(piece))).toEqual(words.encode(text))
  }
})

test("a word longer than a hundred characters is unknown as a whole, whatever its length", () => {
  const { unknown } = words.special
  expect(words.encode("a".repeat(100))).not.toEqual([unknown])
  for (const length of [101, 200, 201, 4_000_000]) expect(words.encode("a".repeat(length))).toEqual([unknown])
})
