import { expect, test } from "vitest"
import { Template } from "@huggingface/jinja"
import { defaultModelFile } from "../../test/models.ts"
import { readGguf, withoutDefaultSystem } from "./gguf.ts"

const messages = [{ role: "user", content: "Hi" }]
const turns = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
const system = { role: "system", content: "Be brief." }

test("the shipped chat model is told nothing that the caller did not say, and all that the caller said", async () => {
  const { chatTemplate = "" } = await readGguf(defaultModelFile)
  const template = new Template(chatTemplate)
  expect(template.render({ messages, add_generation_prompt: true })).toBe(turns)
  expect(template.render({ messages: [system, ...messages], add_generation_prompt: true })).toBe(
    `<|im_start|>system\nBe brief.<|im_end|>\n${turns}`,
  )
})

test("other templates stay as they are", () => {
  const other = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
  expect(withoutDefaultSystem(other)).toBe(other)
})
