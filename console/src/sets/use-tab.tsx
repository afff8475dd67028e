/** How a set is asked from elsewhere. */
import { type ReactNode, useState } from "react"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { CopyButton } from "../parts/copy-button.tsx"
import { Segments } from "../parts/field.tsx"
import { Panel } from "../parts/page.tsx"
import { curlOf } from "../playground/code.ts"

const kinds = [
  { value: "curl", label: "curl" },
  { value: "openai", label: "OpenAI SDK" },
  { value: "cli", label: "Command line" },
] as const
type Kind = (typeof kinds)[number]["value"]

export function UseTab({ set }: { set: QuestionSet }): ReactNode {
  const [kind, setKind] = useState<Kind>("curl")
  const code = snippet(kind, set)
  return (
    <Panel title="Use this set">
      <div className="flex flex-col gap-3">
        <div className="flex flex-wrap items-center justify-between gap-2">
          <Segments label="Language" value={kind} options={kinds} onChange={setKind} />
          <CopyButton text={code} label="Copy code" />
        </div>
        <pre
          tabIndex={0}
          aria-label="Code"
          className="bg-sunken border-line overflow-auto rounded-lg border p-3 font-mono text-xs leading-relaxed"
        >
          {code}
        </pre>
        <ul className="text-soft list-disc space-y-1 pl-5 text-xs">
          <li>
            <code>set:{set.name}</code> answers with{" "}
            {set.production_version === null
              ? `the latest version (now ${set.latest_version}), until one is published`
              : `the published version ${set.production_version}`}
            ;{" "}
            <code>
              set:{set.name}@{set.latest_version}
            </code>{" "}
            always with version {set.latest_version}.
          </li>
          <li>
            Each answer has a <code>verdict</code>: what the set answers or <code>abstain</code>, how sure it
            is, and its threshold. The header <code>x-umpire-abstained</code> names the questions that it
            abstained from.
          </li>
          <li>
            Put an API key with the permission <code>inference</code> into the environment variable{" "}
            <code>UMPIRE_API_KEY</code>; <code>umpire sets</code> also needs <code>api-read</code> and{" "}
            <code>api-write</code>.
          </li>
        </ul>
      </div>
    </Panel>
  )
}

function snippet(kind: Kind, { name, questions }: QuestionSet): string {
  const body = { model: `set:${name}`, input: "The text to decide on.", questions: [] }
  switch (kind) {
    case "curl":
      return curlOf("POST", `${location.origin}/v1/decisions`, JSON.stringify(body, null, 2)).replace(
        "curl -s ",
        "curl -si ",
      )
    case "openai":
      return [
        'import OpenAI from "openai"',
        "",
        "const client = new OpenAI({",
        "  apiKey: process.env.UMPIRE_API_KEY,",
        `  baseURL: "${location.origin}/v1",`,
        "})",
        "",
        "const { answers } = await client.decisions.create({",
        `  model: "set:${name}",`,
        '  input: "The text to decide on.",',
        "  questions: [],",
        "})",
        "",
        ...questions.map((one, index) => `console.log("${one.name}", answers[${index}].verdict)`),
      ].join("\n")
    case "cli":
      return [
        `export UMPIRE_URL=${location.origin}`,
        `umpire sets pull ${name} --out ${name}.yaml   # the latest version as a file, to be kept in git`,
        `umpire sets push ${name}.yaml --note "why"`,
        `umpire sets teach ${name}`,
        `umpire sets check ${name} --against production   # exits with 1 when a frozen case fails`,
      ].join("\n")
  }
}
