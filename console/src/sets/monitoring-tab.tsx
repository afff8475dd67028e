/** How a set's answers are distributed over time: small charts for each question, and their drift. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { QuestionSetMonitoring } from "../../../src/contract/question-sets/monitoring.ts"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { api } from "../api.ts"
import { Segments, SelectField, TextField } from "../parts/field.tsx"
import { day, moment } from "../parts/format.ts"
import { Empty, Loaded, Notice } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { LanguagesPanel } from "./monitored-languages.tsx"
import { MonitoredPanel } from "./monitored-question.tsx"
import {
  type MonitoringChoice,
  type ReferenceChoice,
  firstChoice,
  monitoringQuery,
  ranges,
  referenceWords,
  referencesOf,
  withRange,
} from "./monitoring-query.ts"
import { type SetAddress, setsKey } from "./set-query.ts"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

const refreshMs = 15_000

export function MonitoringTab({ set, at }: { set: QuestionSet; at: SetAddress }): ReactNode {
  const [choice, setChoice] = useState(firstChoice)
  const monitoring = useQuery({
    queryKey: [...setsKey(at.org_id), "monitoring", at.set_id, choice],
    placeholderData: keepPreviousData,
    refetchInterval: refreshMs,
    queryFn: async () => {
      const query = monitoringQuery(choice, Date.now())
      return query && (await api.getQuestionSetMonitoring({ params: at, query }))
    },
  })
  return (
    <div className="flex flex-col gap-4">
      <Chooser choice={choice} versions={monitoring.data?.versions ?? []} onChange={setChoice} />
      <Loaded query={monitoring} label={t("Loading the counts of answers")}>
        {(data) =>
          data === null ? (
            <Notice tone="info">{t("Choose the first and the last day of the reference window.")}</Notice>
          ) : (
            <Questions set={set} data={data} />
          )
        }
      </Loaded>
    </div>
  )
}

function Chooser({
  choice,
  versions,
  onChange,
}: {
  choice: MonitoringChoice
  versions: readonly number[]
  onChange: (choice: MonitoringChoice) => void
}): ReactNode {
  const change = (next: Partial<MonitoringChoice>): void => onChange({ ...choice, ...next })
  const known = new Set([...versions, ...(choice.version ? [Number(choice.version)] : [])])
  return (
    <div className="flex flex-wrap items-end gap-3">
      <div className="flex h-9 items-center max-sm:basis-full">
        <Segments
          label={t("Time range")}
          value={choice.range}
          options={ranges}
          onChange={(range) => onChange(withRange(choice, range))}
        />
      </div>
      <div className="min-w-0 max-sm:flex-1 sm:w-52">
        <SelectField
          label={t("Compared with")}
          value={choice.reference}
          options={referencesOf(choice.range)}
          onChange={(event) => change({ reference: event.target.value as ReferenceChoice })}
        />
      </div>
      {choice.reference === "dates" ? (
        <>
          <TextField
            label={t("From")}
            type="date"
            value={choice.from}
            onChange={(event) => change({ from: event.target.value })}
          />
          <TextField
            label={t("To")}
            type="date"
            value={choice.to}
            onChange={(event) => change({ to: event.target.value })}
          />
        </>
      ) : null}
      <div className="min-w-0 max-sm:flex-1 sm:w-36">
        <SelectField
          label={t("Version")}
          value={choice.version}
          options={[
            { value: "", label: t("All versions") },
            ...[...known]
              .toSorted((one, other) => other - one)
              .map((version) => ({ value: String(version), label: t("Version {version}", { version }) })),
          ]}
          onChange={(event) => change({ version: event.target.value })}
        />
      </div>
    </div>
  )
}

function Questions({ set, data }: { set: QuestionSet; data: QuestionSetMonitoring }): ReactNode {
  const { id: orgId } = useOrganization()
  const answers = data.questions.reduce((total, { rows }) => total + rows, 0)
  if (answers === 0)
    return (
      <div className="panel">
        <Empty icon="chart" title={t("No answers in this range")}>
          {t(
            "As soon as requests for “set:{name}” come, this page shows how they are answered. Only counts are kept, no texts.",
            { name: set.name },
          )}
        </Empty>
      </div>
    )
  return (
    <>
      <p className="text-soft text-xs">
        <T
          text="{count} answers since {start}, compared with {referenceWords}. Only counts are kept, no texts. <a>Create an alert</a> to be notified of drift or low confidence."
          one="{count} answer since {start}, compared with {referenceWords}. Only counts are kept, no texts. <a>Create an alert</a> to be notified of drift or low confidence."
          count={answers}
          start={moment(data.range.start)}
          referenceWords={referenceWords(data, day)}
          a={(children) => (
            <Link
              to="/o/$orgId/alerts"
              params={{ orgId }}
              search={{ open: "create", set: set.id }}
              className="text-accent underline"
            >
              {children}
            </Link>
          )}
        />
      </p>
      {inOrder(set, data.questions).map((question) => (
        <MonitoredPanel
          key={question.name}
          question={question}
          asked={set.questions.find(({ name }) => name === question.name)}
          bucket={data.bucket}
        />
      ))}
      <LanguagesPanel monitored={data.languages} />
    </>
  )
}

/** As the set asks them; those that it no longer asks come last. */
function inOrder(set: QuestionSet, questions: QuestionSetMonitoring["questions"]) {
  const placeOf = (name: string): number => {
    const place = set.questions.findIndex((asked) => asked.name === name)
    return place === -1 ? set.questions.length : place
  }
  return questions.toSorted((one, other) => placeOf(one.name) - placeOf(other.name))
}
