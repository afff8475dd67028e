/** Requests that the classification endpoints must refuse, with the code of the refusal; the status is always 422. */
import type { FaultCode } from "../src/contract/errors.ts"
import {
  ask,
  askNamed,
  bodyText,
  choice,
  decisions,
  expandedBytesMax,
  levels,
  levelWordingBytes,
  mebibyte,
  named,
  nestedLists,
  noul,
  noulText,
  options,
  optionWordingBytes,
  predicate,
  predicateWordingBytes,
  repeated,
  rubric,
  score,
  systemOne,
  systemOneText,
  textPart,
  userMessage,
} from "./classification-bodies.ts"
import type { BodyFor, ClassificationEndpoint } from "./classification-bodies.ts"

interface BadInput {
  readonly name: string
  readonly endpoint: ClassificationEndpoint
  readonly body: BodyFor
  readonly status: 422
  readonly code: FaultCode
  /** Sent instead of application/json; null sends none. */
  readonly contentType?: string | null
  readonly headers?: Readonly<Record<string, string>>
  /** Only a server can refuse it: the decoder never sees what is wrong. */
  readonly http?: true
}

type Case = readonly [name: string, code: FaultCode, body: BodyFor]

const decisionsPart = '"input":"a","questions":[]'
const withInput = (input: unknown): BodyFor => decisions({ input })
const withParts = (...parts: unknown[]): BodyFor => withInput([userMessage(parts)])
const item = (fields: Record<string, unknown>): BodyFor => withInput([userMessage("a"), fields])

const notJson: readonly Case[] = [
  ["an empty body", "invalid_json", () => ""],
  ["a body of spaces", "invalid_json", () => "  \n"],
  ["a body that is not JSON", "invalid_json", () => "model=m&input=a"],
  ["a truncated body", "invalid_json", (model) => bodyText(decisionsPart)(model).slice(0, -1)],
  ["a body truncated inside a string", "invalid_json", () => '{"model":"m","input":"The sk'],
  ["a body truncated inside a character", "invalid_json", () => Uint8Array.from([0x7b, 0x22, 0xc3])],
  ["a second value after the body", "invalid_json", (model) => `${bodyText(decisionsPart)(model)}{}`],
  ["NaN", "invalid_json", bodyText('"input":NaN,"questions":[]')],
  ["Infinity", "invalid_json", bodyText('"input":-Infinity,"questions":[]')],
  ["a trailing comma", "invalid_json", bodyText(`${decisionsPart},`)],
  ["a comment", "invalid_json", bodyText(`/* hello */${decisionsPart}`)],
  ["single quotes", "invalid_json", () => "{'model':'m','input':'a','questions':[]}"],
  ["a raw newline in a string", "invalid_json", bodyText('"input":"a\nb","questions":[]')],
  ["a raw NUL byte in a string", "invalid_json", bodyText('"input":"a\u0000","questions":[]')],
  ["NUL bytes after the body", "invalid_json", (model) => `${bodyText(decisionsPart)(model)}\u0000\u0000`],
  ["a body of NUL bytes", "invalid_json", () => new Uint8Array(64)],
  ["an unknown escape", "invalid_json", bodyText('"input":"\\x41","questions":[]')],
  ["bytes that are not UTF-8", "invalid_json", () => Uint8Array.from([0x7b, 0x22, 0xff, 0x22, 0x7d])],
  ["UTF-16", "invalid_json", (model) => Buffer.from(bodyText(decisionsPart)(model), "utf16le")],
  ["a byte order mark", "invalid_json", (model) => `\uFEFF${bodyText(decisionsPart)(model)}`],
  ["10,000 open lists", "invalid_json", () => "[".repeat(10_000)],
  ["10,000 levels of lists", "invalid_json", bodyText(`"input":${nestedLists(10_000)},"questions":[]`)],
  ["10,000 levels of objects", "invalid_json", () => '{"a":'.repeat(10_000) + "1" + "}".repeat(10_000)],
  ["a key given twice in the body", "invalid_json", bodyText(`"input":"b",${decisionsPart}`)],
  [
    "a key given twice in a question",
    "invalid_json",
    bodyText('"input":"a","questions":[{"type":"predicate","instructions":"q","instructions":"r"}]'),
  ],
  [
    "a key given twice in an option",
    "invalid_json",
    bodyText(
      '"input":"a","questions":[{"type":"choice","instructions":"q","choices":[{"value":1,"value":2}]}]',
    ),
  ],
  ["__proto__ given twice", "invalid_json", bodyText(`${decisionsPart},"__proto__":1,"__proto__":2`)],
  ["half of a surrogate pair in the input", "invalid_json", bodyText('"input":"\\ud800","questions":[]')],
  ["the other half", "invalid_json", bodyText('"input":"a\\udc00","questions":[]')],
  ["half of a surrogate pair in the model", "invalid_json", () => `{"model":"\\ud83d",${decisionsPart}}`],
  [
    "a body over 8 MiB",
    "body_too_large",
    (model) => bodyText(decisionsPart)(model) + " ".repeat(8 * mebibyte),
  ],
]

const decisionsShape: readonly Case[] = [
  ["a list for a body", "invalid_request", () => "[]"],
  ["a string for a body", "invalid_request", () => '"a"'],
  ["null for a body", "invalid_request", () => "null"],
  ["no model", "invalid_request", () => `{${decisionsPart}}`],
  ["a null model", "invalid_request", decisions({ model: null })],
  ["a number for a model", "invalid_request", decisions({ model: 5 })],
  ["an empty model", "invalid_request", decisions({ model: "" })],
  ["a model of Unicode spaces", "invalid_request", decisions({ model: " \t\u00a0\u2003\u3000" })],
  ["a model of 257 bytes", "invalid_request", decisions({ model: "m".repeat(257) })],
  ["a model of 129 characters and 258 bytes", "invalid_request", decisions({ model: "é".repeat(129) })],
  ["a number for a safety identifier", "invalid_request", decisions({ safety_identifier: 5 })],
  ["an object for a safety identifier", "invalid_request", decisions({ safety_identifier: {} })],
  ["no questions field", "invalid_request", decisions({ questions: undefined })],
  ["null questions", "invalid_request", decisions({ questions: null })],
  ["an object for questions", "invalid_request", decisions({ questions: { q: predicate() } })],
  ["a string for a question", "invalid_request", ask("Is it?")],
  ["null for a question", "invalid_request", ask(predicate(), null)],
  ["a question without a type", "invalid_request", ask({ instructions: "q" })],
  ["a number for a question type", "invalid_request", ask(predicate({ type: 1 }))],
  ["an unknown question type", "invalid_request", ask(predicate({ type: "noul" }))],
  ["an inherited name for a question type", "invalid_request", ask(predicate({ type: "__proto__" }))],
  ["no instructions", "invalid_request", ask(predicate({ instructions: undefined }))],
  ["null instructions", "invalid_request", ask(predicate({ instructions: null }))],
  ["an object for instructions", "invalid_request", ask(predicate({ instructions: {} }))],
  ["a list of parts for instructions", "invalid_request", ask(predicate({ instructions: [textPart("q")] }))],
  ["a number for a question name", "invalid_request", ask(predicate({ name: 7 }))],
  ["no choices", "invalid_request", ask(choice(undefined))],
  ["null choices", "invalid_request", ask(choice(null))],
  ["an object for choices", "invalid_request", ask(choice({ a: "b" }))],
  ["an empty list of choices", "invalid_request", ask(choice([]))],
  ["256 choices", "invalid_request", ask(choice(options(256)))],
  ["a plain string for a choice", "invalid_request", ask(choice(["red"]))],
  ["a choice without a value", "invalid_request", ask(choice([{ description: "d" }]))],
  ["a null choice value", "invalid_request", ask(choice([{ value: null }]))],
  ["a number for a choice value", "invalid_request", ask(choice([{ value: 1 }]))],
  ["a list for a choice value", "invalid_request", ask(choice([{ value: ["a"] }]))],
  ["a number for a choice description", "invalid_request", ask(choice([{ value: "a", description: 1 }]))],
  [
    "two equal strings among the choices",
    "duplicate_choice",
    ask(choice([{ value: "a" }, { value: "a", description: "d" }])),
  ],
  [
    "true twice among the choices",
    "duplicate_choice",
    ask(choice([{ value: true }, { value: "true" }, { value: true }])),
  ],
  ["no levels", "invalid_request", ask(score(undefined))],
  ["a string for levels", "invalid_request", ask(score("0..3"))],
  ["an empty list of levels", "invalid_request", ask(score([]))],
  ["one level", "invalid_request", ask(score(levels(1)))],
  ["11 levels", "invalid_request", ask(score(levels(11)))],
  ["a plain string for a level", "invalid_request", ask(score(["low", "high"]))],
  ["a level without a label", "invalid_request", ask(score([{ label: "a" }, {}]))],
  ["a boolean for a label", "invalid_request", ask(score([{ label: "a" }, { label: true }]))],
  [
    "an object for a level description",
    "invalid_request",
    ask(score([{ label: "a" }, { label: "b", description: {} }])),
  ],
  ["an unknown field in the body", "unknown_field", decisions({ temperature: 0 })],
  ["a prompt cache key", "unknown_field", decisions({ prompt_cache_key: "k" })],
  ["__proto__ in the body", "unknown_field", bodyText(`${decisionsPart},"__proto__":{"model":"m"}`)],
  ["an unknown field in a predicate", "unknown_field", ask(predicate({ weight: 1 }))],
  ["choices in a predicate", "unknown_field", ask(predicate({ choices: options(2) }))],
  ["an unknown field in a choice", "unknown_field", ask(choice(options(2), { multiple: true }))],
  ["an unknown field in an option", "unknown_field", ask(choice([{ value: "a", label: "b" }]))],
  ["an unknown field in a score", "unknown_field", ask(score(levels(2), { min: 0 }))],
  ["an unknown field in a level", "unknown_field", ask(score([{ label: "a" }, { label: "b", value: 1 }]))],
  ["constructor in a question", "unknown_field", ask(predicate({ constructor: "x" }))],
]

const decisionsInput: readonly Case[] = [
  ["no input", "invalid_request", withInput(undefined)],
  ["null input", "invalid_request", withInput(null)],
  ["a number for input", "invalid_request", withInput(5)],
  ["one message outside a list", "invalid_request", withInput(userMessage("a"))],
  ["a string among the messages", "invalid_request", withInput([userMessage("a"), "b"])],
  ["a list among the messages", "invalid_request", withInput([[userMessage("a")]])],
  ["a message without a role", "invalid_request", withInput([{ content: "a" }])],
  ["a null role", "invalid_request", withInput([userMessage("a", { role: null })])],
  ["a message without content", "invalid_request", withInput([{ role: "user" }])],
  ["null content", "invalid_request", withInput([userMessage(null)])],
  ["a part outside a list", "invalid_request", withInput([userMessage(textPart("a"))])],
  ["a null message type", "invalid_request", withInput([userMessage("a", { type: null })])],
  ["a string among the parts", "invalid_request", withParts("a")],
  ["a part without a type", "invalid_request", withParts({ text: "a" })],
  ["a part without text", "invalid_request", withParts({ type: "input_text" })],
  ["a number for the text of a part", "invalid_request", withParts(textPart(1))],
  ["an unknown field in a message", "unknown_field", withInput([userMessage("a", { id: "msg_1" })])],
  ["an unknown field in a part", "unknown_field", withParts({ ...textPart("a"), annotations: [] })],
  ["an assistant message", "unsupported_input", item({ role: "assistant", content: "b" })],
  ["a system message", "unsupported_input", item({ role: "system", content: "b" })],
  ["a developer message", "unsupported_input", item({ type: "message", role: "developer", content: "b" })],
  ["a tool message", "unsupported_input", item({ role: "tool", content: "b", tool_call_id: "c" })],
  ["a role in capitals", "unsupported_input", item({ role: "User", content: "b" })],
  ["an item reference", "unsupported_input", item({ type: "item_reference", id: "msg_1" })],
  [
    "a function call",
    "unsupported_input",
    item({ type: "function_call", call_id: "c", name: "f", arguments: "{}" }),
  ],
  [
    "a function output",
    "unsupported_input",
    item({ type: "function_call_output", call_id: "c", output: "o" }),
  ],
  [
    "an image part",
    "unsupported_input",
    withParts(textPart("a"), { type: "input_image", image_url: "data:," }),
  ],
  ["a file part", "unsupported_input", withParts({ type: "input_file", file_id: "file_1" })],
  [
    "an audio part",
    "unsupported_input",
    withParts({ type: "input_audio", input_audio: { data: "", format: "wav" } }),
  ],
  ["a chat text part", "unsupported_input", withParts({ type: "text", text: "a" })],
  ["an output text part", "unsupported_input", withParts({ type: "output_text", text: "a" })],
  ["empty input", "input_blank", withInput("")],
  ["input of Unicode spaces", "input_blank", withInput(" \n\t\u0085\u00a0\u2028\u3000")],
  ["no messages", "input_blank", withInput([])],
  ["a message of empty content", "input_blank", withInput([userMessage("")])],
  ["a message of no parts", "input_blank", withInput([userMessage([])])],
  [
    "messages that are all blank",
    "input_blank",
    withInput([userMessage(" "), userMessage([textPart(""), textPart("\n")])]),
  ],
  ["4 MiB and a byte of input", "input_too_large", withInput("a".repeat(4 * mebibyte + 1))],
  ["4 MiB and a byte in two-byte characters", "input_too_large", withInput(`a${"é".repeat(2 * mebibyte)}`)],
  [
    "4 MiB and a byte with the newlines between messages",
    "input_too_large",
    withInput([userMessage("a".repeat(4 * mebibyte - 2)), userMessage("b")]),
  ],
]

const decisionsLimits: readonly Case[] = [
  ["4097 questions", "too_many_questions", decisions({ questions: repeated(4097, predicate()) })],
  ["4097 values that are no questions", "too_many_questions", decisions({ questions: repeated(4097, 0) })],
  [
    "4097 branches of 17 choices and more",
    "too_many_branches",
    ask(...repeated(16, choice(options(255))), choice(options(17))),
  ],
  [
    "4097 branches in 4096 questions",
    "too_many_branches",
    ask(...repeated(4095, predicate()), score(levels(2))),
  ],
  [
    "a predicate of 16 KiB and a byte",
    "question_too_large",
    ask(predicate({ instructions: "q".repeat(expandedBytesMax - predicateWordingBytes + 1) })),
  ],
  [
    "a predicate over 16 KiB in three-byte characters",
    "question_too_large",
    ask(predicate({ instructions: "日".repeat(5452) })),
  ],
  [
    "an option of 16 KiB and a byte",
    "question_too_large",
    ask(
      choice([
        { value: "b" },
        {
          value: "a",
          description: "d".repeat(expandedBytesMax - optionWordingBytes - "Which colour? - ".length + 1),
        },
      ]),
    ),
  ],
  [
    "a level of 16 KiB and a byte",
    "question_too_large",
    ask(
      score([{ label: "a" }, { label: "b" }], {
        instructions: "q".repeat(expandedBytesMax - levelWordingBytes + 1),
      }),
    ),
  ],
]

const systemOneCases: readonly Case[] = [
  ["a truncated body", "invalid_json", (model) => systemOneText('"a"')(model).slice(0, -2)],
  ["an ID given twice", "invalid_json", systemOneText('"a"', `{"q":${noulText},"q":${noulText}}`)],
  [
    "an ID given twice in two spellings",
    "invalid_json",
    systemOneText('"a"', `{"q":${noulText},"\\u0071":${noulText}}`),
  ],
  [
    "an option name given twice",
    "invalid_json",
    systemOneText('"a"', '{"q":{"type":"choice","instructions":"q","criteria":{"a":"1","a":"2"}}}'),
  ],
  ["a key given twice deep in the state", "invalid_json", systemOneText('[[{"a":{"b":1,"b":2}}]]')],
  ["half of a surrogate pair in an ID", "invalid_json", systemOneText('"a"', `{"\\udfff":${noulText}}`)],
  ["half of a surrogate pair in a state's key", "invalid_json", systemOneText('{"\\ud800":1}')],
  ["a state nested 65 levels deep", "invalid_json", systemOneText(nestedLists(65))],
  ["a state nested 10,000 levels deep", "invalid_json", systemOneText(nestedLists(10_000))],
  ["a state of more lists than are read", "invalid_json", systemOneText(`[${"[0],".repeat(262_144)}0]`)],
  ["a state of more values than are read", "invalid_json", systemOneText(`[${"0,".repeat(524_289)}0]`)],
  [
    "criteria nested 65 levels deep",
    "invalid_json",
    systemOneText('"a"', `{"q":{"type":"score","instructions":"q","criteria":["a",${nestedLists(65)}]}}`),
  ],
  ["a body over 8 MiB", "body_too_large", (model) => systemOneText('"a"')(model) + " ".repeat(8 * mebibyte)],
  ["a list for a body", "invalid_request", () => "[]"],
  ["no model", "invalid_request", systemOne({ model: undefined })],
  ["a null model", "invalid_request", systemOne({ model: null })],
  ["an empty model", "invalid_request", systemOne({ model: "" })],
  ["a model of 258 bytes", "invalid_request", systemOne({ model: "é".repeat(129) })],
  ["no state", "invalid_request", systemOne({ state: undefined })],
  ["a null state", "invalid_request", systemOne({ state: null })],
  ["a number for a state", "invalid_request", systemOne({ state: 5 })],
  ["a boolean for a state", "invalid_request", systemOne({ state: true })],
  ["an empty state", "input_blank", systemOne({ state: "" })],
  ["a state of 4 MiB and a byte", "input_too_large", systemOne({ state: "a".repeat(4 * mebibyte + 1) })],
  [
    "a JSON state that renders to 4 MiB and a byte",
    "input_too_large",
    systemOne({ state: ["a".repeat(4 * mebibyte - 3)] }),
  ],
  ["no questions field", "invalid_request", systemOne({ questions: undefined })],
  ["null questions", "invalid_request", systemOne({ questions: null })],
  ["a list for questions", "invalid_request", systemOne({ questions: [noul()] })],
  ["an empty map of questions", "invalid_request", systemOne({ questions: {} })],
  ["an empty ID", "invalid_request", systemOne({ questions: { "": noul() } })],
  ["an ID of Unicode spaces", "invalid_request", systemOne({ questions: { " \u2003": noul() } })],
  ["an ID of 257 bytes", "invalid_request", systemOne({ questions: { ["q".repeat(257)]: noul() } })],
  [
    "an ID of 65 characters and 260 bytes",
    "invalid_request",
    systemOne({ questions: { ["😀".repeat(65)]: noul() } }),
  ],
  ["a string for a question", "invalid_request", askNamed("Is it?")],
  ["a question without a type", "invalid_request", askNamed({ instructions: "q" })],
  ["a question type of the other endpoint", "invalid_request", askNamed(noul({ type: "predicate" }))],
  ["a null question type", "invalid_request", askNamed(noul({ type: null }))],
  ["no instructions", "invalid_request", askNamed(noul({ instructions: undefined }))],
  ["null instructions", "invalid_request", askNamed(noul({ instructions: null }))],
  ["empty instructions", "invalid_request", askNamed(noul({ instructions: "" }))],
  ["a number for instructions", "invalid_request", askNamed(noul({ instructions: 5 }))],
  ["a boolean for instructions", "invalid_request", askNamed(noul({ instructions: false }))],
  ["a string for noul criteria", "invalid_request", askNamed(noul({ criteria: "yes" }))],
  ["a list for noul criteria", "invalid_request", askNamed(noul({ criteria: ["yes", "no"] }))],
  ["a null meaning of yes", "invalid_request", askNamed(noul({ criteria: { true: null } }))],
  ["a number for the meaning of no", "invalid_request", askNamed(noul({ criteria: { false: 0 } }))],
  ["a choice without criteria", "invalid_request", askNamed(rubric("choice", undefined))],
  ["null choice criteria", "invalid_request", askNamed(rubric("choice", null))],
  ["a list for choice criteria", "invalid_request", askNamed(rubric("choice", ["a", "b"]))],
  ["a choice of no options", "invalid_request", askNamed(rubric("choice", {}))],
  ["256 options", "invalid_request", askNamed(rubric("choice", named(256, "d")))],
  ["a blank option name", "invalid_request", askNamed(rubric("choice", { "\t": "d" }))],
  ["a null criterion", "invalid_request", askNamed(rubric("choice", { a: null }))],
  ["a number for a criterion", "invalid_request", askNamed(rubric("choice", { a: 1 }))],
  ["a score without criteria", "invalid_request", askNamed(rubric("score", undefined))],
  ["an object for score criteria", "invalid_request", askNamed(rubric("score", { 0: "a", 1: "b" }))],
  ["one level", "invalid_request", askNamed(rubric("score", ["a"]))],
  ["11 levels", "invalid_request", askNamed(rubric("score", repeated(11, "a")))],
  ["a null level", "invalid_request", askNamed(rubric("score", ["a", null]))],
  ["a boolean for a level", "invalid_request", askNamed(rubric("score", ["a", true]))],
  ["an unknown field in the body", "unknown_field", systemOne({ input: "a" })],
  [
    "a safety identifier, which only decisions takes",
    "unknown_field",
    systemOne({ safety_identifier: null }),
  ],
  ["an unknown field in a noul", "unknown_field", askNamed(noul({ name: "n" }))],
  ["an unknown field in noul criteria", "unknown_field", askNamed(noul({ criteria: { yes: "y" } }))],
  [
    "an unknown field in a choice",
    "unknown_field",
    askNamed({ ...rubric("choice", { a: "b" }), choices: [] }),
  ],
  ["an unknown field in a score", "unknown_field", askNamed({ ...rubric("score", ["a", "b"]), levels: 2 })],
  [
    "__proto__ in noul criteria",
    "unknown_field",
    systemOneText('"a"', '{"q":{"type":"noul","instructions":"q","criteria":{"__proto__":"x"}}}'),
  ],
  ["4097 questions", "too_many_questions", systemOne({ questions: named(4097, noul()) })],
  [
    "4097 branches",
    "too_many_branches",
    systemOne({ questions: { ...named(4095, noul()), last: rubric("score", ["a", "b"]) } }),
  ],
  [
    "a noul of 16 KiB and a byte",
    "question_too_large",
    askNamed(noul({ instructions: "q".repeat(expandedBytesMax - predicateWordingBytes + 1) })),
  ],
  [
    "a JSON instruction over 16 KiB",
    "question_too_large",
    askNamed(noul({ instructions: ["q".repeat(expandedBytesMax - predicateWordingBytes - 3)] })),
  ],
  [
    "an option name over 16 KiB",
    "question_too_large",
    askNamed(rubric("choice", { ["a".repeat(expandedBytesMax)]: "d" })),
  ],
]

const overHttp: readonly BadInput[] = [
  {
    ...bad("/v1/decisions")(["no content type", "unsupported_content_type", decisions({})]),
    contentType: null,
    http: true,
  },
  {
    ...bad("/v1/decisions")(["plain text", "unsupported_content_type", decisions({})]),
    contentType: "text/plain",
    http: true,
  },
  {
    ...bad("/v1/systemone")(["a form", "unsupported_content_type", systemOne({})]),
    contentType: "application/x-www-form-urlencoded",
    http: true,
  },
  {
    ...bad("/v1/decisions")(["an unknown model", "unknown_model", decisions({ model: "no such model" })]),
    http: true,
  },
  {
    ...bad("/v1/systemone")(["an unknown model", "unknown_model", systemOne({ model: "__proto__" })]),
    http: true,
  },
  {
    ...bad("/v1/systemone")(["a model of one space", "unknown_model", systemOne({ model: " " })]),
    http: true,
  },
  {
    ...bad("/v1/decisions")(["a routing hint to nowhere", "unknown_routing_hint", decisions({})]),
    headers: { "x-umpire-region": "no-such-region" },
    http: true,
  },
]

export const badClassificationInputs: readonly BadInput[] = [
  ...[...notJson, ...decisionsShape, ...decisionsInput, ...decisionsLimits].map(bad("/v1/decisions")),
  ...systemOneCases.map(bad("/v1/systemone")),
  ...overHttp,
]

function bad(endpoint: ClassificationEndpoint): (row: Case) => BadInput {
  return ([name, code, body]) => ({ name, endpoint, body, status: 422, code })
}
