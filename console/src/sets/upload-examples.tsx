/** Uploads labelled rows and says what became of each kind: added, known, contradicting, refused. */
import { type ReactNode, useState } from "react"
import { questionSetLimits } from "../../../src/contract/question-sets/content.ts"
import type { AddedRows } from "../../../src/contract/question-sets/examples.ts"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { api, sentenceOf, useWrite } from "../api.ts"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { Button } from "../parts/button.tsx"
import { FileDrop } from "../parts/file-drop.tsx"
import { count } from "../parts/format.ts"
import { Notice } from "../parts/page.tsx"
import { fileText } from "../tables/file-text.ts"
import { possibleLabels } from "./labels.ts"
import { type SetAddress, setsKey } from "./set-query.ts"
import { missingInput, refusalLines } from "./upload-words.ts"
import { T } from "../i18n/sentence.tsx"
import { t, tn } from "../i18n/translate.ts"

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
  const columns = (
    <>
      <code>input</code>,{" "}
      {set.questions.map(({ name }, index) => (
        <span key={name}>
          {index > 0 ? ", " : ""}
          <code>{name}</code>
        </span>
      ))}
      {set.questions.length === 1 ? (
        <>
          {" "}
          (<T text="or {label}" label={<code>label</code>} />)
        </>
      ) : null}
    </>
  )
  return (
    <div className="flex flex-col gap-3">
      <FileDrop
        name={upload.isPending ? t("Uploading {name}", { name: given?.name ?? "" }) : null}
        prompt={t("Drop a CSV or JSONL file with labelled rows.")}
        label={t("Examples file")}
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
        <T
          text="Columns: {columns}. An empty cell is no label. <a>Download a template</a>"
          columns={columns}
          a={(children) => (
            <a href={templateOf(set)} download={`${set.name}-examples.csv`} className="text-accent underline">
              {children}
            </a>
          )}
        />
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
      t("A text for which {question} is {answer}", { question: asked.name, answer: name }),
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
    t("{added} added", { added: count(added) }),
    ...(updated > 0 ? [t("{updated} updated", { updated: count(updated) })] : []),
    ...(duplicates > 0 ? [tn(duplicates, "{count} duplicate", "{count} duplicates")] : []),
    ...(contradicting > 0
      ? [t("{contradicting} contradicting", { contradicting: count(contradicting) })]
      : []),
    ...(refused > 0 ? [t("{refused} refused", { refused: count(refused) })] : []),
  ]
  return (
    <div
      role="status"
      aria-label={t("Result of the upload")}
      className="panel flex flex-col gap-3 p-4 text-sm"
    >
      <p>
        <span className="font-medium wrap-anywhere">{file.name}</span>: {figures.join(", ")}.
      </p>
      {contradicting > 0 && !file.replace ? (
        <Listed
          title={tn(
            contradicting,
            "{count} row with another label than before, left out",
            "{count} rows with another label than before, left out",
          )}
          lines={result.contradictions.map(({ row, question, before, now }) =>
            t("Row {row}: {question} is {before}, the file says {now}", {
              row,
              question,
              before: String(before),
              now: String(now),
            }),
          )}
          unlisted={contradicting - result.contradictions.length}
          action={
            <Button small busy={busy} onClick={onReplace}>
              {t("Take the labels of the file")}
            </Button>
          }
        />
      ) : null}
      {refused > 0 ? (
        <Listed
          title={tn(refused, "{count} row refused", "{count} rows refused")}
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
        className="text-soft max-h-40 list-disc overflow-y-auto ps-5 text-xs wrap-anywhere"
      >
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
        {unlisted > 0 ? <li>{t("and {unlisted} more", { unlisted: count(unlisted) })}</li> : null}
      </ul>
    </div>
  )
}
