import fc from "fast-check"
import { expect, test } from "vitest"
import { families } from "./families.ts"
import { createReader, FirstCallReader } from "./reading.ts"

/** Two calls in the way of each family, and what the first of them says. */
const outputs: readonly [family: string, output: string, name: string, given: string][] = [
  [
    "qwen",
    'Well.\n<tool_call>\n{"name": "a", "arguments": {"x": {"y": 1}}}\n</tool_call>\n<tool_call>\n{"name": "b", "arguments": {}}\n</tool_call>more',
    "a",
    '{"x": {"y": 1}}',
  ],
  [
    "qwen-coder",
    "<tool_call>\n<function=a>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call><tool_call>\n<function=b>\n</function>\n</tool_call>",
    "a",
    '{"x":1}',
  ],
  [
    "mistral",
    '[TOOL_CALLS][{"name": "a", "arguments": {"x": 1}}, {"name": "b", "arguments": {}}]',
    "a",
    '{"x": 1}',
  ],
  [
    "deepseek",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>a<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁call▁begin｜>b<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
    "a",
    "{}",
  ],
  [
    "gemma-functions",
    "<start_function_call>call:a{x:1}<end_function_call><start_function_call>call:b{}<end_function_call>",
    "a",
    '{"x":1}',
  ],
  [
    "gpt-oss",
    "<|channel|>commentary to=functions.a <|constrain|>json<|message|>{}<|call|><|start|>assistant<|channel|>commentary to=functions.b<|message|>{}<|call|>",
    "a",
    "{}",
  ],
]

test.each(outputs)(
  "%s: nothing is read after the first call, wherever pieces break",
  (name, output, called, given) => {
    const family = families.find((one) => one.name === name)
    if (!family) throw new Error(`no family ${name}`)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 8 }), (sizes) => {
        const reader = new FirstCallReader(createReader(family, { startsReasoning: false, tools: true }))
        const events = []
        for (let start = 0, turn = 0; start < output.length; turn++) {
          const size = sizes[turn % sizes.length] ?? 1
          events.push(...reader.read(output.slice(start, start + size)))
          start += size
        }
        expect(reader.ended).toBe(true)
        events.push(...reader.end())
        const calls = events.flatMap((event) => (event.kind === "call" ? [event.name] : []))
        const written = events.flatMap((event) => (event.kind === "arguments" ? [event.text] : [])).join("")
        expect([calls, written]).toEqual([[called], given])
        expect(events.at(-1)?.kind).toBe("arguments")
      }),
      { numRuns: 100 },
    )
  },
)

test("an answer without a call is read whole", () => {
  const [family] = families.filter(({ name }) => name === "plain")
  if (!family) throw new Error("no plain family")
  const reader = new FirstCallReader(createReader(family, { startsReasoning: false, tools: true }))
  expect([...reader.read("Hello "), ...reader.read("there"), ...reader.end()]).toEqual([
    { kind: "text", text: "Hello" },
    { kind: "text", text: " there" },
  ])
  expect(reader.ended).toBe(false)
})
