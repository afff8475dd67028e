/** Quick start: rows are pasted, labelled with keys and taught, and the page says what that changed and what can be promised. */
import { useQuery } from "@tanstack/react-query"
import { Link, getRouteApi, useNavigate } from "@tanstack/react-router"
import { type ReactNode, useMemo, useState } from "react"
import { Button } from "../parts/button.tsx"
import { AreaField } from "../parts/field.tsx"
import { FileDrop } from "../parts/file-drop.tsx"
import { count } from "../parts/format.ts"
import { Loaded, Notice, Page, Panel } from "../parts/page.tsx"
import { sentenceOf } from "../api.ts"
import { useOrganization } from "../session.ts"
import { setQuery } from "../sets/set-query.ts"
import { fileText } from "../tables/file-text.ts"
import { LabelRows } from "./label-rows.tsx"
import { QuestionForm } from "./question-form.tsx"
import { sampleQuestion, sampleSource } from "./sample.ts"
import { rowsOf, sourceCharactersMax, startRowsMax, takenOf, useStartDraft } from "./start-draft.ts"
import { TaughtRows } from "./taught-rows.tsx"
import { TeachRows } from "./teach-rows.tsx"
import { T } from "../i18n/sentence.tsx"
import { t, tn } from "../i18n/translate.ts"

const route = getRouteApi("/o/$orgId/start")

export function StartPage(): ReactNode {
  const { set } = route.useSearch()
  return (
    <Page
      title={t("Quick start")}
      about={t(
        "Ten of your own texts are enough to begin: say what you want to know, label them, teach the model, and see what that changed. It takes about five minutes.",
      )}
    >
      {set === undefined ? <Prepare /> : <Outcome name={set} />}
    </Page>
  )
}

function Outcome({ name }: { name: string }): ReactNode {
  const { id: orgId } = useOrganization()
  const { clear } = useStartDraft()
  const navigate = useNavigate()
  const query = useQuery(setQuery(orgId, name))
  return (
    <>
      <Loaded query={query} label={t("Loading the question set")}>
        {(set) => <TaughtRows key={set.id} set={set} at={{ org_id: orgId, set_id: set.id }} />}
      </Loaded>
      <div className="flex flex-wrap gap-2">
        <Button onClick={() => void navigate({ to: "/o/$orgId/start", params: { orgId }, search: {} })}>
          {t("Back to the rows")}
        </Button>
        <Button
          kind="bare"
          onClick={() => {
            clear()
            void navigate({ to: "/o/$orgId/start", params: { orgId }, search: {} })
          }}
        >
          {t("Start with other rows")}
        </Button>
      </div>
    </>
  )
}

function Prepare(): ReactNode {
  const { draft, change, clear } = useStartDraft()
  const { source, isTaken, changes, options, labels } = draft
  const taken = useMemo(
    () => (isTaken ? takenOf({ source, changes, options }) : null),
    [source, isTaken, changes, options],
  )
  if (!taken || "problem" in taken) return <Source problem={taken?.problem ?? null} />
  const { table, proposal, question } = taken
  const { rows, unused } = rowsOf(table, proposal, { labels })
  return (
    <>
      <Notice
        tone="plain"
        action={
          <span className="flex flex-wrap gap-1">
            <Button small onClick={() => change({ isTaken: false })}>
              {t("Change the rows")}
            </Button>
            <Button small kind="bare" onClick={clear}>
              {t("Start over")}
            </Button>
          </span>
        }
      >
        {tn(rows.length, "{count} row with a text.", "{count} rows with a text.")}
        {unused > 0
          ? ` ${tn(
              unused,
              "{count} more are left out: this page takes {startRowsMax}, the Examples of a set take the rest.",
              "{count} more are left out: this page takes {startRowsMax}, the Examples of a set take the rest.",
              { startRowsMax },
            )}`
          : ""}
      </Notice>
      <QuestionForm
        table={table}
        proposal={proposal}
        options={options}
        onChange={(next) => change({ changes: { ...changes, ...next } })}
        onOptions={(text) => change({ options: text })}
      />
      {question ? (
        <>
          <LabelRows question={question} rows={rows} draft={draft} onChange={change} />
          <TeachRows
            question={question}
            column={proposal.label}
            rows={rows}
            made={draft.made}
            onMade={(made) => change({ made })}
          />
        </>
      ) : null}
    </>
  )
}

function Source({ problem }: { problem: string | null }): ReactNode {
  const { id: orgId } = useOrganization()
  const { draft, change } = useStartDraft()
  const [unreadable, setUnreadable] = useState<string | null>(null)
  const take = (source: string, instructions?: string): void => {
    setUnreadable(null)
    const changes = instructions === undefined ? {} : { instructions }
    const isTaken = source.length <= sourceCharactersMax
    change({ source, isTaken, changes, options: null, labels: {}, decided: [], made: null })
  }
  const tooLong = draft.source.length > sourceCharactersMax
  return (
    <Panel title={t("1. Your rows")}>
      <div className="flex flex-col gap-3">
        <AreaField
          label={t("Rows")}
          rows={9}
          dir="auto"
          placeholder={t(
            "Paste a text on each line, or a table with a header:\n\nmessage, team\nMy parcel never came, parcels\nYou charged me twice, billing",
          )}
          hint={t(
            "A column of labels is used where there is one; the rest you label here. Nothing leaves this server.",
          )}
          error={
            tooLong
              ? t("This page takes {sourceCharactersMax} characters. Paste fewer rows.", {
                  sourceCharactersMax: count(sourceCharactersMax),
                })
              : problem
          }
          value={draft.source}
          onChange={(event) => change({ source: event.target.value, isTaken: false })}
          onPaste={(event) => {
            const text = event.clipboardData.getData("text/plain")
            if (draft.source.trim() !== "" || text.trim() === "" || text.length > sourceCharactersMax) return
            event.preventDefault()
            take(text)
          }}
        />
        <div className="flex flex-wrap items-center gap-2">
          <Button
            kind="loud"
            icon="check"
            disabled={draft.source.trim() === "" || tooLong}
            onClick={() => change({ isTaken: true })}
          >
            {t("Use these rows")}
          </Button>
          <Button onClick={() => take(sampleSource, sampleQuestion)}>{t("Use sample rows")}</Button>
        </div>
        <FileDrop
          name={null}
          disabled={false}
          prompt={t("Or drop a CSV, TSV, JSONL or text file.")}
          label={t("File with rows")}
          bytesMax={1024 * 1024}
          onFile={(_, bytes) => {
            try {
              take(fileText(bytes))
            } catch (failure) {
              setUnreadable(sentenceOf(failure))
            }
          }}
          onError={setUnreadable}
        />
        {unreadable ? <Notice tone="bad">{unreadable}</Notice> : null}
        <p className="text-soft text-xs">
          <T
            text="Have a question set already? <a>Question sets</a> take rows under Examples."
            a={(children) => (
              <Link to="/o/$orgId/sets" params={{ orgId }} search={{}} className="underline">
                {children}
              </Link>
            )}
          />
        </p>
      </div>
    </Panel>
  )
}
