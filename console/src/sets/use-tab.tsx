/** How a set is asked from elsewhere. */
import { type ReactNode, useState } from "react"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { CopyButton } from "../parts/copy-button.tsx"
import { Segments } from "../parts/field.tsx"
import { Panel } from "../parts/page.tsx"
import { curlOf } from "../playground/code.ts"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

const kinds = [
  { value: "curl", label: "curl" },
  { value: "openai", label: t("OpenAI SDK") },
  { value: "cli", label: t("Command line") },
] as const
type Kind = (typeof kinds)[number]["value"]

export function UseTab({ set }: { set: QuestionSet }): ReactNode {
  const [kind, setKind] = useState<Kind>("curl")
  const code = snippet(kind, set)
  const names = {
    set: <code>set:{set.name}</code>,
    fixed: (
      <code>
        set:{set.name}@{set.latest_version}
      </code>
    ),
    version: set.latest_version,
  }
  return (
    <Panel title={t("Use this set")}>
      <div className="flex flex-col gap-3">
        <div className="flex flex-wrap items-center justify-between gap-2">
          <Segments label={t("Language")} value={kind} options={kinds} onChange={setKind} />
          <CopyButton text={code} label={t("Copy code")} />
        </div>
        <pre
          tabIndex={0}
          aria-label={t("Code")}
          className="bg-sunken border-line overflow-auto rounded-lg border p-3 font-mono text-xs leading-relaxed"
        >
          {code}
        </pre>
        <ul className="text-soft list-disc space-y-1 ps-5 text-xs">
          <li>
            {set.production_version === null ? (
              <T
                text="{set} answers with the latest version (now {version}), until one is published; {fixed} always with version {version}."
                {...names}
              />
            ) : (
              <T
                text="{set} answers with the published version {published}; {fixed} always with version {version}."
                {...names}
                published={set.production_version}
              />
            )}
          </li>
          <li>
            <T
              text="Each answer has a <code>verdict</code>: what the set answers or <code2>abstain</code2>, how sure it is, and its threshold. The header <code3>x-umpire-abstained</code3> names the questions that it abstained from."
              code={(children) => <code>{children}</code>}
              code2={(children) => <code>{children}</code>}
              code3={(children) => <code>{children}</code>}
            />
          </li>
          <li>
            <T
              text="Put an API key with the permission <code>inference</code> into the environment variable <code2>UMPIRE_API_KEY</code2>; <code3>umpire sets</code3> also needs <code4>api-read</code4> and <code5>api-write</code5>."
              code={(children) => <code>{children}</code>}
              code2={(children) => <code>{children}</code>}
              code3={(children) => <code>{children}</code>}
              code4={(children) => <code>{children}</code>}
              code5={(children) => <code>{children}</code>}
            />
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
