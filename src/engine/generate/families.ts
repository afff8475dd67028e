/** How families of models mark their reasoning and their function calls in text, as data. */
import { jsonOrText, parsedJson } from "../../base/json.ts"

export interface CallFormat {
  /** Where a call begins. */
  readonly open: string
  /** What a call ends with, after its arguments. */
  readonly close: string
  /** Without an opening mark of its own: a call is only looked for at the start of the answer. */
  readonly onlyAtStart?: true
  /** From the opening mark to the arguments, with the name as its first group; the arguments are a JSON object. */
  readonly head: RegExp
  /** For bodies that are not JSON: reads everything between the marks. */
  readonly read?: (body: string) => { readonly name: string; readonly arguments: string } | null
  /** How to write a call: before the name, between name and arguments, after them. */
  readonly written: readonly [before: string, between: string, after: string]
}

export interface Family {
  readonly name: string
  /** Whether a chat template is one of this family's. */
  readonly recognises: RegExp
  readonly reasoning: { readonly open: string; readonly close: string } | null
  readonly calls: readonly CallFormat[]
  /** Marks around calls that say nothing by themselves. */
  readonly dropped: readonly string[]
  /** Whether the template itself shows the tools to the model. */
  readonly showsTools: boolean
}

const jsonCall = (open: string, close: string): CallFormat => ({
  open,
  close,
  head: /^\s*\{\s*"name"\s*:\s*"([^"]+)"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)/,
  written: [`${open}\n{"name": "`, '", "arguments": ', `}\n${close}`],
})

const hermesCall = jsonCall("<tool_call>", "</tool_call>")

/** <tool_call><function=name><parameter=key>value</parameter></function></tool_call> */
const tagCall: CallFormat = {
  open: "<tool_call>",
  close: "</tool_call>",
  head: /^(?!)/,
  read: (body) => {
    const name = /<function=([^>]+)>/.exec(body)?.[1]
    if (name === undefined) return null
    const values = [...body.matchAll(/<parameter=([^>]+)>\n?([\s\S]*?)\n?<\/parameter>/g)].map(
      ([, key = "", value = ""]) => [key, jsonOrText(value)],
    )
    return { name, arguments: JSON.stringify(Object.fromEntries(values)) }
  },
  written: ["<tool_call>\n<function=", ">", "\n</function>\n</tool_call>"],
}

/** call:name{key:<escape>text<escape>,other:1} */
const escapedCall = (open: string, close: string, quote: string): CallFormat => ({
  open,
  close,
  head: /^(?!)/,
  read: (body) => {
    const [, name, inside] = /^\s*call:([\w.-]+)\{([\s\S]*)\}\s*$/.exec(body) ?? []
    if (name === undefined || inside === undefined) return null
    const pieces = inside.split(quote)
    // Every second piece stood between two quotes: it is text, whatever it holds.
    const json = pieces
      .map((piece, index) =>
        index % 2 === 1 ? JSON.stringify(piece) : piece.replaceAll(/([\w.-]+)\s*:/g, '"$1":'),
      )
      .join("")
    return parsedJson(`{${json}}`) !== undefined ? { name, arguments: `{${json}}` } : null
  },
  written: [`${open}call:`, "", close],
})

const think = { open: "<think>", close: "</think>" }

/** The first that recognises a template is used; the last one recognises all. */
export const families: readonly Family[] = [
  {
    name: "gpt-oss",
    recognises: /<\|channel\|>/,
    reasoning: null,
    calls: [],
    dropped: [],
    showsTools: true,
  },
  {
    name: "deepseek",
    recognises: /<｜tool▁calls?▁begin｜>/,
    reasoning: think,
    calls: [
      {
        open: "<｜tool▁call▁begin｜>",
        close: "<｜tool▁call▁end｜>",
        head: /^(?:function<｜tool▁sep｜>)?([^\s<{]+)(?:<｜tool▁sep｜>|\n```json\n)\s*(?=\{)/,
        written: ["<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"],
      },
    ],
    dropped: ["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"],
    showsTools: true,
  },
  {
    name: "mistral",
    recognises: /\[TOOL_CALLS\]|\[AVAILABLE_TOOLS\]/,
    reasoning: { open: "[THINK]", close: "[/THINK]" },
    calls: [
      {
        open: "[TOOL_CALLS]",
        close: "",
        head: /^\s*(?:\[\s*\{\s*"name"\s*:\s*"([^"]+)"\s*,\s*"arguments"\s*:\s*|([\w.-]+)(?:\[CALL_ID\][\w-]+)?\[ARGS\]\s*)(?=\{)/,
        written: ['[TOOL_CALLS][{"name": "', '", "arguments": ', "}]"],
      },
    ],
    dropped: [],
    showsTools: true,
  },
  {
    name: "llama",
    recognises: /<\|start_header_id\|>[\s\S]*(?:"parameters"|ipython)|<\|python_tag\|>/,
    reasoning: null,
    calls: [
      {
        open: "{",
        close: "}",
        onlyAtStart: true,
        head: /^\s*"(?:type"\s*:\s*"function"\s*,\s*")?name"\s*:\s*"([^"]+)"\s*,\s*"(?:parameters|arguments)"\s*:\s*(?=\{)/,
        written: ['{"name": "', '", "parameters": ', "}"],
      },
    ],
    dropped: [],
    showsTools: true,
  },
  {
    name: "gemma-4",
    recognises: /<\|tool_call>/,
    reasoning: { open: "<|channel>thought", close: "<channel|>" },
    calls: [escapedCall("<|tool_call>", "<tool_call|>", '<|"|>')],
    dropped: [],
    showsTools: true,
  },
  {
    name: "gemma-functions",
    recognises: /<start_function_call>/,
    reasoning: null,
    calls: [escapedCall("<start_function_call>", "<end_function_call>", "<escape>")],
    dropped: [],
    showsTools: true,
  },
  {
    name: "gemma",
    recognises: /<start_of_turn>/,
    reasoning: null,
    calls: [hermesCall],
    dropped: [],
    showsTools: false,
  },
  {
    name: "qwen-coder",
    recognises: /<tool_call>[\s\S]*<function=/,
    reasoning: think,
    calls: [tagCall],
    dropped: [],
    showsTools: true,
  },
  {
    name: "qwen",
    recognises: /<tool_call>/,
    reasoning: think,
    calls: [hermesCall],
    dropped: [],
    showsTools: true,
  },
  {
    name: "plain",
    recognises: /(?:)/,
    reasoning: think,
    calls: [hermesCall],
    dropped: [],
    showsTools: false,
  },
]

export function familyOf(template: string | undefined): Family {
  const found = families.find(({ recognises }) => recognises.test(template ?? ""))
  if (!found) throw new Error("The last family recognises every template")
  return found
}

/** Marks that are tokens of their own in some vocabularies and must reach the reader as text. */
export function marksOf(family: Family): Set<string> {
  const marks = family.calls.flatMap(({ open, close }) => [open, close])
  if (family.reasoning) marks.push(family.reasoning.open, family.reasoning.close)
  return new Set([...marks.filter((mark) => mark.length > 1), ...innerMarks])
}

/** Marks inside formats, and those of gpt-oss. */
const innerMarks = [
  "<｜tool▁sep｜>",
  "<｜tool▁calls▁begin｜>",
  "<｜tool▁calls▁end｜>",
  "[ARGS]",
  "[CALL_ID]",
  '<|"|>',
  "<escape>",
  "<|channel|>",
  "<|message|>",
  "<|start|>",
  "<|end|>",
  "<|constrain|>",
  "<|call|>",
  "<|return|>",
]
