/** What teaching from a few rows changed: before and after, what can be promised, and which rows are answered differently now. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { type ReactNode, useEffect, useRef } from "react"
import type { SetQuestion } from "../../../src/contract/question-sets/content.ts"
import type { Artefact, CompareResult } from "../../../src/contract/question-sets/jobs.ts"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { api, useWrite } from "../api.ts"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { count, percent, probability } from "../parts/format.ts"
import { Loaded, Notice, Panel } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { JobProgress, isUnderWay, useNewestJob } from "../sets/job.tsx"
import { type LabelValue, labelName } from "../sets/labels.ts"
import { type SetAddress, examplesKey, jobsKey, setsKey } from "../sets/set-query.ts"
import { TabLink } from "../sets/tab-link.tsx"
import { TaughtQuestion, artefactQuery } from "../sets/taught-question.tsx"
import { Ended } from "../sets/teach-tab.tsx"
import { T } from "../i18n/sentence.tsx"
import { t, tn } from "../i18n/translate.ts"

export function TaughtRows({ set, at }: { set: QuestionSet; at: SetAddress }): ReactNode {
  const queries = useQueryClient()
  const newest = useNewestJob(at, "teach")
  const job = newest.data
  const result = job?.kind === "teach" ? job.result : null
  // The set may have been read just before the teaching ended.
  const isStale = (result?.version ?? 0) > set.latest_version
  useEffect(() => {
    if (isStale) void queries.invalidateQueries({ queryKey: setsKey(at.org_id) })
  }, [isStale, queries, at.org_id])
  const asked = set.questions[0]
  const hash = asked?.artefact ?? null
  return (
    <Loaded query={newest} label={t("Loading the teaching")}>
      {() => (
        <>
          <Panel title={t("Teaching {name}", { name: set.name })}>
            <div className="flex flex-col gap-3">
              {job ? <JobProgress at={at} job={job} doing={t("Asking the model about your rows")} /> : null}
              {result ? <Ended set={set} at={at} result={result} /> : null}
              {hash && result ? <HowMuch at={at} hash={hash} /> : null}
              {result?.version ? <NextSteps set={set} /> : null}
            </div>
          </Panel>
          {asked && result ? (
            <>
              <TaughtQuestion at={at} asked={asked} outcome={result.questions[0] ?? null} />
              {result.version === null ? null : <Changed at={at} asked={asked} version={result.version} />}
            </>
          ) : null}
        </>
      )}
    </Loaded>
  )
}

/** Before and after in one sentence, and what so few rows can say of them. */
function HowMuch({ at, hash }: { at: SetAddress; hash: string }): ReactNode {
  const { data } = useQuery(artefactQuery(at, hash))
  return data ? <p className="number text-base font-medium">{howMuch(data)}</p> : null
}

function howMuch({
  rows,
  held_out,
  cross_validated,
}: Pick<Artefact, "rows" | "held_out" | "cross_validated">): string {
  const { before, after } = held_out ?? cross_validated
  const judged = held_out ? rows.held_out : rows.train
  const right = (share: number): string => count(Math.round(share * judged))
  const said = tn(
    judged,
    "Of {count} row, each judged without having been learned from, {before} were right before and {after} are right after.",
    "Of {count} rows, each judged without having been learned from, {before} were right before and {after} are right after.",
    { before: right(before.accuracy.value), after: right(after.accuracy.value) },
  )
  const { low, high } = after.accuracy
  const isApart = low > before.accuracy.high || high < before.accuracy.low
  return isApart
    ? `${said} ${t("That is more than chance.")}`
    : `${said} ${t("On so few rows that can be chance: on texts like these expect {low} to {high}.", {
        low: percent(low),
        high: percent(high),
      })}`
}

function NextSteps({ set }: { set: QuestionSet }): ReactNode {
  return (
    <p className="text-soft text-sm">
      <T
        text="Next: <tabLink>try it on another text</tabLink>, <tabLink2>add more labelled rows</tabLink2> and teach it again, or <tabLink3>call it from a program</tabLink3>."
        tabLink={(children) => (
          <TabLink set={set} tab="try">
            {children}
          </TabLink>
        )}
        tabLink2={(children) => (
          <TabLink set={set} tab="examples">
            {children}
          </TabLink>
        )}
        tabLink3={(children) => (
          <TabLink set={set} tab="use">
            {children}
          </TabLink>
        )}
      />
    </p>
  )
}

/** The version without teaching; Quick start makes it. */
const untaught = "1"

/** Both versions are asked once, as soon as there are two. */
function Changed({ at, asked, version }: { at: SetAddress; asked: SetQuestion; version: number }): ReactNode {
  const newest = useNewestJob(at, "compare")
  const { mutate, error } = useWrite(
    async () =>
      await api.runQuestionSetComparison({ params: at, body: { from: untaught, to: String(version) } }),
    [jobsKey(at)],
  )
  const job = newest.data?.kind === "compare" ? newest.data : null
  const isThis = job !== null && (isUnderWay(job) || job.result?.to === version)
  const isMissing = !newest.isPending && !isThis
  // Once for a version: what could not be started says so, and is not tried over and over.
  const started = useRef(0)
  useEffect(() => {
    if (!isMissing || started.current === version) return
    started.current = version
    mutate(undefined)
  }, [isMissing, mutate, version])
  return (
    <Panel title={t("Which answers changed")}>
      <div className="flex flex-col gap-3">
        <ErrorNotice error={error} />
        {job ? <JobProgress at={at} job={job} doing={t("Asking before and after")} /> : null}
        {job?.result?.to === version ? <Flips at={at} asked={asked} result={job.result} /> : null}
      </div>
    </Panel>
  )
}

const examplesReadMax = 200

function Flips({
  at,
  asked,
  result,
}: {
  at: SetAddress
  asked: SetQuestion
  result: CompareResult
}): ReactNode {
  const { data = [] } = useQuery({
    queryKey: [...examplesKey(at), "texts"],
    queryFn: async () =>
      (await api.listQuestionSetExamples({ params: at, query: { limit: examplesReadMax } })).data,
  })
  const examples = new Map(data.map((example) => [example.id, example]))
  const labelOf = (id: string): LabelValue | undefined => examples.get(id)?.labels[asked.name]
  const answer = (id: string, value: LabelValue, confidence: number): ReactNode => (
    <span className="number whitespace-nowrap">
      {labelName(asked, value)}{" "}
      <span className="text-soft text-xs">
        {probability(confidence)}, {isSame(asked, value, labelOf(id)) ? t("right") : t("wrong")}
      </span>
    </span>
  )
  return (
    <>
      <p className="text-soft number text-sm">
        {tn(
          result.flips.length,
          "{count} answer of {texts} changed. These are the rows that it learned from, so that being right on them proves little; the figures above judge each row without it.",
          "{count} answers of {texts} changed. These are the rows that it learned from, so that being right on them proves little; the figures above judge each row without it.",
          { texts: count(result.texts) },
        )}
      </p>
      {result.flips.length > 0 ? (
        <Table
          label={t("Answers that changed")}
          rows={result.flips}
          rowKey={({ id }) => id}
          columns={[
            {
              name: t("Text"),
              long: true,
              cell: ({ id }) => (
                <span dir="auto" className="line-clamp-2 max-w-xl">
                  {examples.get(id)?.input ?? id}
                </span>
              ),
            },
            { name: t("Your label"), cell: ({ id }) => nameOf(asked, labelOf(id)) },
            { name: t("Before"), cell: (flip) => answer(flip.id, flip.before, flip.confidence_before) },
            { name: t("After"), cell: (flip) => answer(flip.id, flip.after, flip.confidence_after) },
          ]}
        />
      ) : (
        <Notice tone="plain">{t("The model answers these rows as before, only more or less sure.")}</Notice>
      )}
    </>
  )
}

const nameOf = (asked: SetQuestion, label: LabelValue | undefined): string =>
  label === undefined ? "–" : labelName(asked, label)

/** A verdict names its answer; a label may be its value or place. */
const isSame = (asked: SetQuestion, verdict: LabelValue, label: LabelValue | undefined): boolean =>
  label !== undefined && labelName(asked, verdict) === labelName(asked, label)
