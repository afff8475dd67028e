/** Frozen cases: texts with the answers that every version must give, and the check that says which do not. */
import { type ReactNode, useState } from "react"
import type { FrozenCase } from "../../../src/contract/question-sets/examples.ts"
import type { CheckResult } from "../../../src/contract/question-sets/jobs.ts"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/dialog.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { SelectField } from "../parts/field.tsx"
import { ago, count, moment, probability } from "../parts/format.ts"
import { Figure } from "../parts/figure.tsx"
import { ActionsMenu, MenuItem } from "../parts/menu.tsx"
import { MoreButton, usePages } from "../parts/more.tsx"
import { Empty, Loaded, Notice, Panel } from "../parts/page.tsx"
import { Table, actionsColumn } from "../parts/table.tsx"
import { AddLabelledText } from "./add-labelled-text.tsx"
import { FlipTables, useAnswerColumns } from "./flip-tables.tsx"
import { JobProgress, isUnderWay, useNewestJob } from "./job.tsx"
import { labelName } from "./labels.ts"
import { type SetAddress, casesKey, jobsKey, setsKey } from "./set-query.ts"
import { versionOptions, useVersionList } from "./version-list.ts"
import { t, tn } from "../i18n/translate.ts"

export function CasesTab({ set, at }: { set: QuestionSet; at: SetAddress }): ReactNode {
  const [adding, setAdding] = useState(false)
  const [deleting, setDeleting] = useState<FrozenCase | null>(null)
  const add = (): void => setAdding(true)
  const cases = usePages(
    [...casesKey(at), "list"],
    async (query) => await api.listQuestionSetCases({ params: at, query }),
  )
  if (set.questions.length === 0)
    return (
      <Notice tone="info">
        {t("Cases expect answers to the questions of a set, and this set has none.")}
      </Notice>
    )
  return (
    <div className="flex flex-col gap-4">
      <Loaded query={cases} label={t("Loading frozen cases")}>
        {(rows) =>
          rows.length === 0 ? (
            <NoCases onAdd={add} />
          ) : (
            <>
              <Check set={set} at={at} />
              <div className="flex flex-wrap items-center justify-between gap-3">
                <p className="text-soft text-sm">
                  {tn(
                    set.counts.cases,
                    "{count} text with the answers that every version must give.",
                    "{count} texts with the answers that every version must give.",
                  )}
                </p>
                <Button icon="plus" onClick={add}>
                  {t("Add case")}
                </Button>
              </div>
              <CaseTable set={set} rows={rows} onDelete={setDeleting} />
            </>
          )
        }
      </Loaded>
      <MoreButton query={cases} />
      {adding ? <AddLabelledText kind="case" set={set} at={at} onClose={() => setAdding(false)} /> : null}
      {deleting ? (
        <ConfirmDialog
          title={t("Delete this case?")}
          submit={t("Delete case")}
          act={async () => await api.deleteQuestionSetCase({ params: { ...at, case_id: deleting.id } })}
          refreshes={[setsKey(at.org_id)]}
          onClose={() => setDeleting(null)}
        >
          {t("“{input}” is no longer checked.", { input: deleting.input.slice(0, shownCharacters) })}
        </ConfirmDialog>
      ) : null}
    </div>
  )
}

const shownCharacters = 120

function NoCases({ onAdd }: { onAdd: () => void }): ReactNode {
  return (
    <div className="panel">
      <Empty
        icon="lock"
        title={t("No frozen cases yet")}
        action={
          <Button kind="loud" icon="plus" onClick={onAdd}>
            {t("Add case")}
          </Button>
        }
      >
        {t(
          "Freeze a text with the answers that it must go on getting. Publishing a version or changing the model then checks all cases and shows which answers flip.",
        )}
      </Empty>
    </div>
  )
}

function CaseTable({
  set,
  rows,
  onDelete,
}: {
  set: QuestionSet
  rows: readonly FrozenCase[]
  onDelete: (one: FrozenCase) => void
}): ReactNode {
  return (
    <Table
      label={t("Frozen cases")}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        {
          name: t("Text"),
          cell: ({ input }) => (
            <span dir="auto" className="line-clamp-3 max-w-2xl">
              {input}
            </span>
          ),
        },
        ...set.questions.map((asked) => ({
          name: asked.name,
          cell: ({ expected }: FrozenCase) => {
            const label = expected[asked.name]
            return label === undefined ? (
              <span className="text-soft">{t("any")}</span>
            ) : (
              labelName(asked, label)
            )
          },
        })),
        {
          name: t("Frozen"),
          cell: ({ created_at }) => (
            <span className="whitespace-nowrap" title={moment(created_at)}>
              {ago(created_at)}
            </span>
          ),
        },
        actionsColumn(true, (one: FrozenCase) => (
          <ActionsMenu of={one.input.slice(0, shownCharacters)}>
            <MenuItem icon="trash" danger onSelect={() => onDelete(one)}>
              {t("Delete")}
            </MenuItem>
          </ActionsMenu>
        )),
      ]}
    />
  )
}

function Check({ set, at }: { set: QuestionSet; at: SetAddress }): ReactNode {
  const versions = useVersionList(at)
  const [version, setVersion] = useState(String(set.latest_version))
  const [against, setAgainst] = useState(
    set.production_version === null || set.production_version === set.latest_version
      ? ""
      : String(set.production_version),
  )
  const job = useNewestJob(at, "check").data
  const start = useWrite(
    async () =>
      await api.checkQuestionSet({ params: at, body: { version, ...(against ? { against } : {}) } }),
    [jobsKey(at)],
  )
  const result = job?.kind === "check" && job.state === "succeeded" ? job.result : null
  return (
    <Panel title={t("Check")}>
      <div className="flex flex-col gap-4">
        <div className="grid items-end gap-3 sm:grid-cols-[12rem_12rem_auto_minmax(0,1fr)]">
          <SelectField
            label={t("Version")}
            value={version}
            options={versionOptions(versions, version)}
            onChange={(event) => setVersion(event.target.value)}
          />
          <SelectField
            label={t("Compared with")}
            value={against}
            options={[{ value: "", label: t("No other version") }, ...versionOptions(versions, against)]}
            onChange={(event) => setAgainst(event.target.value)}
          />
          <Button
            kind="loud"
            icon="play"
            disabled={(job ? isUnderWay(job) : false) || version === against}
            busy={start.isPending}
            onClick={() => start.mutate(undefined)}
          >
            {t("Run check")}
          </Button>
          <p className="text-soft text-xs sm:pb-2">
            {against
              ? tn(
                  set.counts.cases,
                  "{count} case, each charged as a request for each version.",
                  "{count} cases, each charged as a request for each version.",
                )
              : tn(
                  set.counts.cases,
                  "{count} case, each charged as a request.",
                  "{count} cases, each charged as a request.",
                )}
          </p>
        </div>
        <ErrorNotice error={start.error} />
        {job ? <JobProgress at={at} job={job} doing={t("Asking about the frozen cases")} /> : null}
        {result ? <Checked set={set} at={at} result={result} finishedAt={job?.finished_at ?? null} /> : null}
      </div>
    </Panel>
  )
}

function Checked({
  set,
  at,
  result,
  finishedAt,
}: {
  set: QuestionSet
  at: SetAddress
  result: CheckResult
  finishedAt: string | null
}): ReactNode {
  const { version, cases, passed, failed, abstained, failures, difference } = result
  return (
    <>
      <Notice tone={failed > 0 ? "bad" : "good"}>
        {failed > 0
          ? tn(
              failed,
              "Version {version} gives {count} wrong answer.",
              "Version {version} gives {count} wrong answers.",
              { version },
            )
          : abstained > 0
            ? t("Version {version} gives every expected answer that it does not abstain from.", { version })
            : t("Version {version} gives every expected answer.", { version })}
        {finishedAt ? (
          <span title={moment(finishedAt)}>
            {" "}
            {t("Checked {finishedAt}.", { finishedAt: ago(finishedAt) })}
          </span>
        ) : null}
      </Notice>
      <dl className="number grid grid-cols-2 gap-3 sm:grid-cols-4">
        <Figure framed name={t("Cases")} value={count(cases)} />
        <Figure framed name={t("Right answers")} value={count(passed)} />
        <Figure framed name={t("Wrong answers")} value={count(failed)} />
        <Figure framed name={t("Abstained")} value={count(abstained)} />
      </dl>
      {failures.length > 0 ? <Failures set={set} at={at} failures={failures} /> : null}
      {difference ? (
        <>
          <h3 className="text-sm font-semibold">
            {t("From version {from} to version {to}", { from: difference.from, to: difference.to })}
          </h3>
          <FlipTables set={set} at={at} result={difference} />
        </>
      ) : null}
    </>
  )
}

function Failures({
  set,
  at,
  failures,
}: {
  set: QuestionSet
  at: SetAddress
  failures: CheckResult["failures"]
}): ReactNode {
  const answerColumns = useAnswerColumns(at)
  const asked = (name: string) => set.questions.find((one) => one.name === name)
  return (
    <Table
      label={t("Failures")}
      rows={failures}
      rowKey={({ id, question }) => `${id} ${question}`}
      columns={[
        ...answerColumns,
        { name: t("Expected"), cell: (one) => labelName(asked(one.question), one.expected) },
        {
          name: t("Answered"),
          cell: (one) => (
            <span className="text-bad">
              {labelName(asked(one.question), one.verdict)} ({probability(one.confidence)})
            </span>
          ),
        },
      ]}
    />
  )
}
