import { expect, test } from "vitest"
import { splitTemplate } from "./prompt.ts"

const texts = { bosText: "<s>", eosText: "</s>" }

test("a chat template is split around the user's text", () => {
  const template =
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}{{ eos_token }}{% endfor %}" +
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
  expect(splitTemplate({ ...texts, template: `{{ bos_token }}${template}` })).toEqual({
    head: "<s><|user|>",
    tail: "</s><|assistant|>",
  })
})

test("thinking is switched off where a template has it", () => {
  const template = "{{ messages[0].content }}{% if not enable_thinking %}<think></think>{% endif %}"
  expect(splitTemplate({ ...texts, template }).tail).toBe("<think></think>")
})

test("a model without a template is asked in plain text", () => {
  expect(splitTemplate({ ...texts, template: undefined })).toEqual({ head: "", tail: "\nAnswer:" })
})

test.each([
  ["leaves the user's text out", "nothing", "it wrote the user's text 0 times"],
  [
    "repeats the user's text",
    "{{ messages[0].content }}{{ messages[0].content }}",
    "it wrote the user's text 2 times",
  ],
  ["cannot be rendered", "{{ raise_exception('no') }}", "Cannot render the model's chat template"],
  ["cannot be read", "{% if %}", "Cannot render the model's chat template"],
])("a template that %s is refused", (_, template, sentence) => {
  expect(() => splitTemplate({ ...texts, template })).toThrow(sentence)
})
