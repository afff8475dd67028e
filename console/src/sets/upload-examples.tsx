/** Uploads labelled rows and says what became of each kind: added, known, contradicting, refused. */
import { type ReactNode, useState } from "react"
import { questionSetLimits } from "../../../src/contract/question-sets/content.ts"
import type { AddedRows } from "../../../src/contract/question-sets/examples.ts"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { api, sentenceOf, useWrite } from "../api.ts"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { Button } from "../parts/button.tsx"
import { FileDrop } from "../parts/file-drop.tsx"
import { count, plural } from "../parts/format.ts"
import { Notice } from "../parts/page.tsx"
import { fileText } from "../tables/file-text.ts"
import { possibleLabels } from "./labels.ts"
import { type SetAddress, setsKey } from "./set-query.ts"
import { missingInput, refusalLines } from "./upload-words.ts"

interface GivenFile {
  readonly name: string
  readonly text: string
  /** Rows that contradict known ones replace their labels. */
  readonly replace: boolean
}

export function UploadExamples({ set, at }: { set: QuestionSet; at: SetAddress }): ReactNode {
  const [unusable, setUnusable] = useState<string | null>(null)
  const upload = useWrite(
    async ({ name, text, replace }: GivenFile) =>
      await api.uploadQuestionSetExamples({
        params: at,
        query: { replace: replace ? "true" : "false" },
        headers: { "content-type": isJsonLines(name, text) ? "application/jsonl" : "text/csv" },
        body: text,
      }),
    [setsKey(at.org_id)],
  )
  const given = upload.variables
  return (
    <div className="flex flex-col gap-3">
      <FileDrop
        name={upload.isPending ? `Uploading ${given?.name ?? ""}` : null}
        prompt="Drop a CSV or JSONL file with labelled rows."
        label="Examples file"
        bytesMax={questionSetLimits.uploadBytesMax}
        disabled={upload.isPending}
        onFile={(name, bytes) => {
          setUnusable(null)
          upload.reset()
          try {
            const text = fileText(bytes)
            const missing = missingInput(text, isJsonLines(name, text))
            if (missing) setUnusable(missing)
            else upload.mutate({ name, text, replace: false })
          } catch (error) {
            setUnusable(sentenceOf(error))
          }
        }}
        onError={setUnusable}
      />
      <p className="text-soft text-xs">
        Columns: <code>input</code>,{" "}
        {set.questions.map(({ name }, index) => (
          <span key={name}>
            {index > 0 ? ", " : ""}
            <code>{name}</code>
          </span>
        ))}
        {set.questions.length === 1 ? (
          <>
            {" "}
            (or <code>label</code>)
          </>
        ) : null}
        . An empty cell is no label.{" "}
        <a href={templateOf(set)} download={`${set.name}-examples.csv`} className="text-accent underline">
          Download a template
        </a>
      </p>
      {unusable ? <Notice tone="bad">{unusable}</Notice> : null}
      <ErrorNotice error={upload.error} />
      {upload.data && given ? (
        <Outcome
          file={given}
          result={upload.data}
          busy={upload.isPending}
          onReplace={() => upload.mutate({ ...given, replace: true })}
        />
      ) : null}
    </div>
  )
}

/** The columns, and one row for each answer of each question, to be replaced by real texts. */
function templateOf({ questions }: QuestionSet): string {
  const rows = questions.flatMap((asked) =>
    possibleLabels(asked).map(({ name }) => [
      `A text for which ${asked.name} is ${name}`,
      ...questions.map((one) => (one === asked ? name : "")),
    ]),
  )
  const lines = [["input", ...questions.map(({ name }) => name)], ...rows].map((cells) =>
    cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(","),
  )
  return `data:text/csv;charset=utf-8,${encodeURIComponent(`${lines.join("\n")}\n`)}`
}

const isJsonLines = (name: string, text: string): boolean =>
  /\.(?:jsonl|ndjson)$/i.test(name) || /^\s*\{/.test(text)

function Outcome({
  file,
  result,
  busy,
  onReplace,
}: {
  file: GivenFile
  result: AddedRows
  busy: boolean
  onReplace: () => void
}): ReactNode {
  const { added, updated, duplicates, contradictions_count: contradicting, refused_count: refused } = result
  const figures = [
    ["added", added],
    ["updated", updated],
    [duplicates === 1 ? "duplicate" : "duplicates", duplicates],
    ["contradicting", contradicting],
    ["refused", refused],
  ] as const
  return (
    <div role="status" aria-label="Result of the upload" className="panel flex flex-col gap-3 p-4 text-sm">
      <p>
        <span className="font-medium wrap-anywhere">{file.name}</span>:{" "}
        {figures
          .filter(([name, many]) => many > 0 || name === "added")
          .map(([name, many]) => `${count(many)} ${name}`)
          .join(", ")}
        .
      </p>
      {contradicting > 0 && !file.replace ? (
        <Listed
          title={`${plural(contradicting, "row")} with another label than before, left out`}
          lines={result.contradictions.map(
            ({ row, question, before, now }) =>
              `Row ${row}: ${question} is ${String(before)}, the file says ${String(now)}`,
          )}
          unlisted={contradicting - result.contradictions.length}
          action={
            <Button small busy={busy} onClick={onReplace}>
              Take the labels of the file
            </Button>
          }
        />
      ) : null}
      {refused > 0 ? (
        <Listed
          title={`${plural(refused, "row")} refused`}
          lines={refusalLines(result.refused)}
          unlisted={refused - result.refused.length}
        />
      ) : null}
    </div>
  )
}

function Listed({
  title,
  lines,
  unlisted,
  action,
}: {
  title: string
  lines: readonly string[]
  /** How many rows there are beside these. */
  unlisted: number
  action?: ReactNode
}): ReactNode {
  return (
    <div className="flex flex-col gap-1">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <p className="text-warn font-medium">{title}</p>
        {action}
      </div>
      <ul
        tabIndex={0}
        aria-label={title}
        className="text-soft max-h-40 list-disc overflow-y-auto pl-5 text-xs wrap-anywhere"
      >
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
        {unlisted > 0 ? <li>and {count(unlisted)} more</li> : null}
      </ul>
    </div>
  )
}
