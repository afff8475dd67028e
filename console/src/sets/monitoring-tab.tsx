/** How a set's answers are distributed over time: small charts for each question, and their drift. */
import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { QuestionSetMonitoring } from "../../../src/contract/question-sets/monitoring.ts"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { api } from "../api.ts"
import { Segments, SelectField, TextField } from "../parts/field.tsx"
import { day, moment, plural } from "../parts/format.ts"
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
      <Loaded query={monitoring} what="the counts of answers">
        {(data) =>
          data === null ? (
            <Notice tone="info">Choose the first and the last day of the reference window.</Notice>
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
          label="Time range"
          value={choice.range}
          options={ranges}
          onChange={(range) => onChange(withRange(choice, range))}
        />
      </div>
      <div className="min-w-0 max-sm:flex-1 sm:w-52">
        <SelectField
          label="Compared with"
          value={choice.reference}
          options={referencesOf(choice.range)}
          onChange={(event) => change({ reference: event.target.value as ReferenceChoice })}
        />
      </div>
      {choice.reference === "dates" ? (
        <>
          <TextField
            label="From"
            type="date"
            value={choice.from}
            onChange={(event) => change({ from: event.target.value })}
          />
          <TextField
            label="To"
            type="date"
            value={choice.to}
            onChange={(event) => change({ to: event.target.value })}
          />
        </>
      ) : null}
      <div className="min-w-0 max-sm:flex-1 sm:w-36">
        <SelectField
          label="Version"
          value={choice.version}
          options={[
            { value: "", label: "All versions" },
            ...[...known]
              .toSorted((one, other) => other - one)
              .map((version) => ({ value: String(version), label: `Version ${version}` })),
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
        <Empty icon="chart" title="No answers in this range">
          As soon as requests for “set:{set.name}” come, this page shows how they are answered. Only counts
          are kept, no texts.
        </Empty>
      </div>
    )
  return (
    <>
      <p className="text-soft text-xs">
        {plural(answers, "answer")} since {moment(data.range.start)}, compared with{" "}
        {referenceWords(data, day)}. Only counts are kept, no texts.{" "}
        <Link
          to="/o/$orgId/alerts"
          params={{ orgId }}
          search={{ open: "create", set: set.id }}
          className="text-accent underline"
        >
          Create an alert
        </Link>{" "}
        to be notified of drift or low confidence.
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
