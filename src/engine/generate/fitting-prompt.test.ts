/** Conversations that do not fit, on a tiny model: what is left of them, and what finding it costs. */
import { beforeAll, expect, test } from "vitest"
import { randomModel } from "../../../test/models.ts"
import { greedyWork } from "../../../test/plain-work.ts"
import { itemsMax } from "../../contract/openai/limits.ts"
import type { ChatMessage, GenerateWork } from "../engine.ts"
import { fittingPrompt } from "./chat-prompt.ts"
import { LocalModel } from "./local-model.ts"

let model: LocalModel
let tokenisedCharacters = 0

beforeAll(async () => {
  model = await LocalModel.open({
    modelFile: randomModel("tiny-f16"),
    kind: "generation",
    threads: 1,
    gpu: false,
  })
  const tokenize = model.tokenize.bind(model)
  model.tokenize = (text, special) => {
    tokenisedCharacters += text.length
    return tokenize(text, special)
  }
})

const said = (content: string): ChatMessage => ({ role: "user", content })
const asked = (messages: readonly ChatMessage[], truncate: boolean): GenerateWork =>
  greedyWork({ messages: [...messages], truncate })

function prompted(messages: readonly ChatMessage[], truncate: boolean): { text: string; characters: number } {
  tokenisedCharacters = 0
  const { tokens } = fittingPrompt(model, asked(messages, truncate), null)
  return { text: model.model.detokenize([...tokens]), characters: tokenisedCharacters }
}

test("no more of the oldest messages go than have to", () => {
  const length = Math.ceil(model.contextTokensMax / 8)
  const messages = Array.from({ length }, (_, at) => said(`message ${at} `.repeat(6)))
  const { text } = prompted(messages, true)
  const kept = messages.filter((_, at) => text.includes(`message ${at} `))
  expect(kept.length).toBeGreaterThan(1)
  expect(kept.length).toBeLessThan(length)
  expect(kept).toEqual(messages.slice(-kept.length))
  expect(() => prompted(messages.slice(-kept.length - 1), false)).toThrow("its prompt has")
})

test("the most and longest messages cost the process little more than those that fit", () => {
  const fitting = model.contextTokensMax * model.tokenCharactersMax
  const messages = Array.from({ length: itemsMax }, () => said("many words ".repeat(1_000)))
  const { characters } = prompted([...messages, said("The last one.")], true)
  expect(characters).toBeLessThan(fitting * 2 * Math.log2(itemsMax))
})

test("a text that cannot fit is not even tokenised", () => {
  expect(() => prompted([said("word ".repeat(1_000_000))], false)).toThrow(
    `its prompt has more than ${model.contextTokensMax} tokens`,
  )
  expect(tokenisedCharacters).toBe(0)
})
