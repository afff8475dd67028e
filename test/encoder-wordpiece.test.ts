/** The encoder's tokens are those of training: hard texts and their ids, as the trainer's tokenizer gave them. */
import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { readEncoderFile } from "../src/engine/encoder/model-file.ts"
import { WordPiece } from "../src/engine/encoder/wordpiece.ts"
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

test("encoding stops once a text is longer than asked for", () => {
  expect(words.encode("a b c d", 2)).toHaveLength(2)
  expect(words.encode("a b c d", 5)).toHaveLength(4)
})
