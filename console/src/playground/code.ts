/** The request of a draft as code to paste elsewhere. */
import { type Draft, questionKeys, toDecisions, toSystemOne } from "./draft.ts"

export const languages = ["curl", "openai", "typesafe", "python"] as const
export type Language = (typeof languages)[number]

export const languageNames: Record<Language, string> = {
  curl: "curl",
  openai: "OpenAI SDK",
  typesafe: "TypeSafe SDK",
  python: "Python",
}

/** The key stays out of it: code is pasted into places where keys must not be. */
export function codeFor(language: Language, draft: Draft, origin: string): string {
  switch (language) {
    case "curl":
      return curl(draft, origin)
    case "openai":
      return openai(draft, origin)
    case "typesafe":
      return typesafe(draft, origin)
    case "python":
      return python(draft, origin)
  }
}

function requestOf(draft: Draft): { path: string; body: unknown } {
  return draft.api === "decisions"
    ? { path: "/v1/decisions", body: toDecisions(draft, draft.model) }
    : { path: "/v1/systemone", body: toSystemOne(draft, draft.model) }
}

function curl(draft: Draft, origin: string): string {
  const { path, body } = requestOf(draft)
  return curlOf("POST", `${origin}${path}`, JSON.stringify(body, null, 2))
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** A request as a command of a shell; a body of null is none. */
export function curlOf(method: string, address: string, body: string | null): string {
  const plain = body === null ? method === "GET" : method === "POST"
  return [
    `curl -s ${plain ? "" : `-X ${method} `}${/^[\w:/.%-]+$/.test(address) ? address : quoted(address)}`,
    '-H "Authorization: Bearer $UMPIRE_API_KEY"',
    ...(body === null ? [] : ['-H "Content-Type: application/json"', `-d ${quoted(body)}`]),
  ].join(" \\\n  ")
}

/** The client of `openai` speaks decisions; for System One it sends the body as it is. */
function openai(draft: Draft, origin: string): string {
  const { path, body } = requestOf(draft)
  const call =
    draft.api === "decisions"
      ? `const decision = await client.decisions.create(${literal(body)})\n\nconsole.log(decision.answers)`
      : `const decision = await client.post("${path.replace("/v1", "")}", {\n  body: ${literal(body, 2)},\n})\n\nconsole.log(decision)`
  return [
    'import OpenAI from "openai"',
    "",
    "const client = new OpenAI({",
    "  apiKey: process.env.UMPIRE_API_KEY,",
    `  baseURL: "${origin}/v1",`,
    "})",
    "",
    call,
  ].join("\n")
}

/** This client speaks System One, so the draft is asked in that form whatever the playground shows. */
function typesafe(draft: Draft, origin: string): string {
  const { state, questions } = toSystemOne(draft, draft.model)
  const keys = questionKeys(draft.questions)
  const lines = keys.map((key) => {
    const asked = questions[key]
    if (!asked) return ""
    const name = { noul: "noul", choice: "choice", score: "score" }[asked.type]
    const criteria = asked.type === "noul" ? "" : `, ${literal(asked.criteria, 4)}`
    return `    ${property(key)}: ${name}(${literal(asked.instructions)}${criteria}),`
  })
  const used = [...new Set(Object.values(questions).map(({ type }) => type))].toSorted()
  return [
    `import { TypeSafeClient, ${used.join(", ")} } from "@typesafe-ai/sdk"`,
    "",
    "const client = new TypeSafeClient({",
    "  apiKey: process.env.UMPIRE_API_KEY,",
    `  baseURL: "${origin}",`,
    `  defaultModel: ${literal(draft.model)},`,
    "})",
    "",
    "const { answers } = await client.systemOne({",
    `  state: ${literal(state, 2)},`,
    "  questions: {",
    ...lines,
    "  },",
    "})",
    "",
    "console.log(answers)",
  ].join("\n")
}

function python(draft: Draft, origin: string): string {
  const { path, body } = requestOf(draft)
  return [
    "import json, os, urllib.request",
    "",
    `body = ${pythonLiteral(body)}`,
    "",
    "request = urllib.request.Request(",
    `    "${origin}${path}",`,
    "    data=json.dumps(body).encode(),",
    "    headers={",
    '        "Authorization": "Bearer " + os.environ["UMPIRE_API_KEY"],',
    '        "Content-Type": "application/json",',
    "    },",
    ")",
    "with urllib.request.urlopen(request) as response:",
    '    print(json.dumps(json.load(response)["answers"], indent=2))',
  ].join("\n")
}

const plainName = /^[A-Za-z_$][\w$]*$/
const property = (key: string): string => (plainName.test(key) ? key : JSON.stringify(key))

/** A JavaScript literal: JSON with plain names left bare. */
function literal(value: unknown, indent = 0): string {
  const json = JSON.stringify(value, null, 2)
  const bare = json.replaceAll(/^(\s*)"([A-Za-z_$][\w$]*)":/gm, "$1$2:")
  return bare.replaceAll("\n", `\n${" ".repeat(indent)}`)
}

/** JSON is Python, but for three words. */
function pythonLiteral(value: unknown): string {
  return JSON.stringify(value, null, 4).replaceAll(
    /^(\s*(?:"(?:[^"\\]|\\.)*": )?)(true|false|null)(,?)$/gm,
    (_, head: string, word: string, tail: string) =>
      `${head}${{ true: "True", false: "False", null: "None" }[word] ?? word}${tail}`,
  )
}
