import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { families, familyOf } from "./families.ts"
import { createReader, type ReadEvent } from "./reading.ts"

const family = (name: string) => {
  const found = families.find((one) => one.name === name)
  if (!found) throw new Error(`no family ${name}`)
  return found
}

/** Events with neighbours of a kind put together, so that it does not matter where pieces broke. */
function joined(events: readonly ReadEvent[]): ReadEvent[] {
  const whole: ReadEvent[] = []
  for (const event of events) {
    const last = whole.at(-1)
    if (last && last.kind === event.kind && "text" in last && "text" in event)
      whole[whole.length - 1] = { ...event, text: last.text + event.text }
    else whole.push(event)
  }
  return whole
}

function read(name: string, pieces: readonly string[], startsReasoning = false): ReadEvent[] {
  const reader = createReader(family(name), { startsReasoning, tools: true })
  return joined([...pieces.flatMap((piece) => reader.read(piece)), ...reader.end()])
}

const call = (name: string, json: string): ReadEvent[] => [
  { kind: "call", name },
  { kind: "arguments", text: json },
]

const scenarios: readonly [family: string, what: string, output: string, expected: readonly ReadEvent[]][] = [
  ["qwen", "text", "Hello there.", [{ kind: "text", text: "Hello there." }]],
  [
    "qwen",
    "reasoning, then text",
    "<think>\nhm\n</think>\n\nHello",
    [
      { kind: "reasoning", text: "\nhm\n" },
      { kind: "text", text: "Hello" },
    ],
  ],
  [
    "qwen",
    "a call",
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "note": "a } brace"}}\n</tool_call>',
    call("get_weather", '{"city": "Oslo", "note": "a } brace"}'),
  ],
  [
    "qwen",
    "text and two calls",
    'Let me see.\n<tool_call>\n{"name": "a", "arguments": {}}\n</tool_call>\n<tool_call>\n{"name": "b", "arguments": {"x": 1}}\n</tool_call>',
    [{ kind: "text", text: "Let me see." }, ...call("a", "{}"), ...call("b", '{"x": 1}')],
  ],
  [
    "qwen-coder",
    "a call in tags",
    "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=note>\nhello\n</parameter>\n</function>\n</tool_call>",
    call("add", '{"a":1,"note":"hello"}'),
  ],
  [
    "llama",
    "a call",
    '{"name": "get_weather", "parameters": {"city": "Oslo"}}',
    call("get_weather", '{"city": "Oslo"}'),
  ],
  ["llama", "JSON that is no call", '{"answer": 42}', [{ kind: "text", text: '{"answer": 42}' }]],
  [
    "mistral",
    "a list of calls",
    '[TOOL_CALLS][{"name": "a", "arguments": {"x": 1}}, {"name": "b", "arguments": {}}]',
    [...call("a", '{"x": 1}'), ...call("b", "{}")],
  ],
  ["mistral", "a call with arguments after a mark", '[TOOL_CALLS]a[ARGS]{"x": 1}', call("a", '{"x": 1}')],
  [
    "mistral",
    "reasoning",
    "[THINK]hm[/THINK]Hello",
    [
      { kind: "reasoning", text: "hm" },
      { kind: "text", text: "Hello" },
    ],
  ],
  [
    "deepseek",
    "a call",
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Oslo"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    call("get_weather", '{"city": "Oslo"}'),
  ],
  [
    "gemma-functions",
    "a call",
    "<start_function_call>call:get_weather{city:<escape>Oslo<escape>,days:2}<end_function_call>",
    call("get_weather", '{"city":"Oslo","days":2}'),
  ],
  [
    "gpt-oss",
    "analysis, a call and an answer",
    '<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Oslo"}<|call|>',
    [{ kind: "reasoning", text: "hm" }, ...call("get_weather", '{"city":"Oslo"}')],
  ],
  ["gpt-oss", "an answer", "<|channel|>final<|message|>Hello<|return|>", [{ kind: "text", text: "Hello" }]],
  ["plain", "an unclosed mark is text", "a <tool_ca", [{ kind: "text", text: "a <tool_ca" }]],
]

describe.each(scenarios)("%s: %s", (name, _what, output, expected) => {
  test("is read whole", () => {
    expect(read(name, [output])).toEqual(expected)
  })

  test("is read the same wherever pieces break", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }), (sizes) => {
        const pieces: string[] = []
        for (let start = 0, turn = 0; start < output.length; turn++) {
          const size = sizes[turn % sizes.length] ?? 1
          pieces.push(output.slice(start, start + size))
          start += size
        }
        expect(read(name, pieces)).toEqual(expected)
      }),
      { numRuns: 60 },
    )
  })
})

test("a prompt that opened the reasoning starts inside it", () => {
  expect(read("qwen", ["hm</think>Hello"], true)).toEqual([
    { kind: "reasoning", text: "hm" },
    { kind: "text", text: "Hello" },
  ])
})

test("without tools, what looks like a call is text", () => {
  const reader = createReader(family("qwen"), { startsReasoning: false, tools: false })
  const output = '<tool_call>\n{"name": "a", "arguments": {}}\n</tool_call>'
  expect(joined([...reader.read(output), ...reader.end()])).toEqual([{ kind: "text", text: output }])
})

test.each([
  ["{% if tools %}<tool_call>{% endif %}<|im_start|>", "qwen"],
  ["<|im_start|>", "plain"],
  ["<tool_call> like <function=name>", "qwen-coder"],
  ["<|start_header_id|>ipython", "llama"],
  ["[INST] [TOOL_CALLS]", "mistral"],
  ["<start_of_turn>user", "gemma"],
  ["<｜tool▁calls▁begin｜>", "deepseek"],
  ["<|start|><|channel|>", "gpt-oss"],
])("the template %j is of the family %s", (template, name) => {
  expect(familyOf(template).name).toBe(name)
})
