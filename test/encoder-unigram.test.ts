/**
 * The tokens of encoders for many languages are those of SentencePiece: hard texts of 29 languages and their ids, as it gave them with a
 * vocabulary that it made of the texts in `model/banks/languages`.
 */
import { readFileSync } from "node:fs"
import fc from "fast-check"
import { expect, test } from "vitest"
import { readEncoder } from "../src/engine/encoder/model-file.ts"
import { openTokenizer, textPieces } from "../src/engine/encoder/tokenizer.ts"
import { onnxField, onnxProperty } from "./onnx-metadata.ts"

interface Fixture {
  /** One a line, in the order of their ids. */
  readonly pieces: string
  /** As in a model's file. */
  readonly scores: string
  readonly lines: readonly (readonly [text: string, ids: number[]])[]
}
const fixture = JSON.parse(readFileSync(new URL("encoder-unigram.json", import.meta.url), "utf8")) as Fixture

const kind = { temperature: 1, bias: 0 }
const description = {
  version: 5,
  name: "unigram",
  quantization: "INT8",
  parameterCount: 9,
  contextTokensMax: 2000,
  layers: 1,
  heads: 2,
  headSize: 4,
  evidencePositions: 8,
  branchPositions: 4,
  blockTokensMax: 64,
  similarityCentre: 0.8,
  recalledWeight: 0,
  calibration: { predicate: kind, choice: kind, score: kind },
  tokenizer: "unigram",
}

async function open({ pieces, scores }: Pick<Fixture, "pieces" | "scores">) {
  const file = Buffer.concat([
    onnxField(7, Buffer.alloc(10, 1)),
    onnxProperty("umpire.encoder", JSON.stringify(description)),
    onnxProperty("umpire.vocabulary", pieces),
    onnxProperty("umpire.scores", scores),
  ])
  const read = (start: number, length: number): Buffer => file.subarray(start, start + length)
  return openTokenizer(await readEncoder({ name: "model.onnx", size: file.length, read }))
}

const tokenizer = await open(fixture)
const pieces = fixture.pieces.split("\n")

test.each(fixture.lines)("the tokens of %j", (text, ids) => {
  expect(tokenizer.encode(text)).toEqual(ids)
})

test("the names of special tokens are plain text", () => {
  const { start, separator, unknown } = tokenizer.special
  expect([pieces[start], pieces[separator], pieces[unknown]]).toEqual(["<s>", "</s>", "<unk>"])
  const ids = tokenizer.encode("s unk </s> <s>")
  expect(ids.filter((id) => id === start || id === separator)).toEqual([])
})

test("a text in pieces has the tokens of the whole", () => {
  const text = fixture.lines.map(([one]) => one).join("\n")
  for (const charactersMin of [1, 7, 100, text.length])
    expect([...textPieces(text, charactersMin)].flatMap((piece) => tokenizer.encode(piece))).toEqual(
      tokenizer.encode(text),
    )
})

test("no text ends the tokenizer, and whatever stands between two words changes only its own tokens", () => {
  const [before, after] = ["Das Paket ist beschädigt", "箱が壊れています"]
  const [first, last] = [tokenizer.encode(before), tokenizer.encode(after)]
  const marks = ["\ud800", "\udc00", "\u200b", "\u200d", "\u202e", "\u2066", "\ufeff", "א", "\u0301"]
  const strange = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.array(fc.constantFrom(...marks)).map((parts) => parts.join("")),
  )
  fc.assert(
    fc.property(strange, (text) => {
      const ids = tokenizer.encode(`${before} ${text} ${after}`)
      expect(ids.slice(0, first.length)).toEqual(first)
      expect(ids.slice(-last.length)).toEqual(last)
      expect(ids.slice(first.length, -last.length)).toEqual(tokenizer.encode(text))
    }),
  )
})

test("an unpaired surrogate inside a word is a space", () => {
  expect(tokenizer.encode("par\ud83dcel")).toEqual(tokenizer.encode("par cel"))
})

test("a word of a million characters has the tokens of its characters", () => {
  const ids = tokenizer.encode("\u6f22".repeat(1_000_000))
  expect(ids.length).toBeGreaterThan(0)
  expect(new Set(ids.slice(1)).size).toBe(1)
})

test.each([
  ["none", ""],
  ["fewer than there are pieces", fixture.scores.slice(0, 400)],
  ["something else", "%%"],
])("scores that are %s are refused", async (_, scores) => {
  await expect(open({ ...fixture, scores })).rejects.toThrow(/vocabulary has 3500 pieces and \d+ scores/u)
})

test("a vocabulary whose special tokens may stand in a text is refused", async () => {
  const likely = Buffer.from(fixture.scores, "base64")
  likely.writeFloatLE(-1, 4 * pieces.indexOf("</s>"))
  await expect(open({ ...fixture, scores: likely.toString("base64") })).rejects.toThrow("no token </s>")
})
