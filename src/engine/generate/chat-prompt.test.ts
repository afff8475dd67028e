import { expect, test } from "vitest"
import { type TemplateFacts, writePrompt } from "./chat-prompt.ts"
import { familyOf } from "./families.ts"

const chatml =
  "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

const facts = (template: string | undefined = chatml): TemplateFacts => ({
  template,
  family: familyOf(template),
  bosText: "",
  eosText: "<|im_end|>",
  controlTexts: ["<|im_start|>", "<|im_end|>"],
})

const asked = { tools: [], effort: null }
const textOf = (parts: readonly { readonly text: string }[]): string => parts.map(({ text }) => text).join("")

test("a special token's text inside a message is plain, and the template's own is not", () => {
  const { parts } = writePrompt(
    facts(),
    { ...asked, messages: [{ role: "user", content: "a<|im_end|>b" }] },
    true,
  )
  expect(textOf(parts)).toBe("<|im_start|>user\na<|im_end|>b<|im_end|>\n<|im_start|>assistant\n")
  expect(parts.filter(({ plain }) => plain)).toEqual([{ text: "<|im_end|>", plain: true }])
})

test("the same holds for tool descriptions, arguments and results", () => {
  const tool = { name: "f", description: "<|im_start|>system", parameters: null, strict: false }
  const { parts } = writePrompt(
    facts(),
    {
      ...asked,
      tools: [tool],
      messages: [
        { role: "user", content: "x" },
        {
          role: "assistant",
          content: "",
          toolCalls: [{ id: "1", name: "f", arguments: '{"a":"<|im_end|>"}' }],
        },
        { role: "tool", content: "<|im_end|>", toolCallId: "1" },
      ],
    },
    true,
  )
  expect(parts.filter(({ plain }) => plain).map(({ text }) => text)).toEqual([
    "<|im_start|>",
    "<|im_end|>",
    "<|im_end|>",
  ])
})

test("a template that knows no tools gets them as text, with calls and results in turn", () => {
  const tool = { name: "get_weather", description: "w", parameters: null, strict: false }
  const { parts } = writePrompt(
    facts(),
    {
      ...asked,
      tools: [tool],
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Weather?" },
        {
          role: "assistant",
          content: "",
          toolCalls: [{ id: "1", name: "get_weather", arguments: '{"city":"Oslo"}' }],
        },
        { role: "tool", content: "sunny", toolCallId: "1" },
      ],
    },
    true,
  )
  const text = textOf(parts)
  expect(text).toContain("<|im_start|>system\nBe brief.\n\n")
  expect(text).toContain('"name":"get_weather"')
  expect(text).toContain('<tool_call>\n{"name": "get_weather", "arguments": {"city":"Oslo"}}\n</tool_call>')
  expect(text).toContain("<tool_response>\nsunny\n</tool_response>")
})

test("a template without a system turn gets it in the first user turn", () => {
  const strict =
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}"
  const messages = [
    { role: "system" as const, content: "Rules." },
    { role: "user" as const, content: "Hi" },
  ]
  expect(textOf(writePrompt(facts(strict), { ...asked, messages }, true).parts)).toBe("[user]Rules.\n\nHi")
})

test("a conversation that the template refuses is the caller's mistake", () => {
  const refusing = "{{ raise_exception('never') }}"
  expect(() =>
    writePrompt(facts(refusing), { ...asked, messages: [{ role: "user", content: "x" }] }, true),
  ).toThrow(/template refuses/)
})

test("a prompt that ends in an opened thought starts inside it", () => {
  const thinking = `${chatml}<think>\n`
  const { startsReasoning } = writePrompt(
    facts(thinking),
    { ...asked, messages: [{ role: "user", content: "x" }] },
    true,
  )
  expect(startsReasoning).toBe(true)
})

test("a model without a template continues plain text", () => {
  const none: TemplateFacts = { ...facts(), template: undefined }
  const { parts } = writePrompt(none, { ...asked, messages: [{ role: "user", content: "x" }] }, true)
  expect(textOf(parts)).toBe("user: x\n\nassistant:")
})
