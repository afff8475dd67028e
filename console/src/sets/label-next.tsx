/** “Label these 10”: a job picks the kept requests whose labels would teach most, and puts them first in the queue. */
import { type ReactNode, useState } from "react"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { SelectField } from "../parts/field.tsx"
import { Loaded, Panel } from "../parts/page.tsx"
import { JobProgress, isUnderWay, useNewestJob } from "./job.tsx"
import { type SetAddress, jobsKey } from "./set-query.ts"
import { t, tn } from "../i18n/translate.ts"

const count = 10

export function LabelNext({ set, at }: { set: QuestionSet; at: SetAddress }): ReactNode {
  const [chosen, setChosen] = useState<string | null>(null)
  const question = chosen ?? set.questions[0]?.name ?? ""
  const newest = useNewestJob(at, "next")
  const start = useWrite(
    async () => await api.proposeQuestionSetLabels({ params: at, body: { question, count } }),
    [jobsKey(at)],
  )
  if (set.questions.length === 0) return null
  return (
    <Panel title={t("What to label next")}>
      <Loaded query={newest} label={t("Loading the last proposal")}>
        {(job) => (
          <div className="flex flex-col gap-3">
            <p className="text-soft text-sm">
              {t(
                "Of the kept requests of this set, those whose labels teach most: answers that are uncertain, and texts that differ from each other and from what is labelled. Each text that is looked at is charged as a request.",
              )}
            </p>
            {set.questions.length > 1 ? (
              <SelectField
                label={t("Question")}
                value={question}
                options={set.questions.map(({ name }) => ({ value: name, label: name }))}
                onChange={(event) => setChosen(event.target.value)}
              />
            ) : null}
            <Button
              icon="play"
              className="self-start"
              busy={start.isPending}
              disabled={job !== null && isUnderWay(job)}
              onClick={() => start.mutate(undefined)}
            >
              {t("Label these {number}", { number: count })}
            </Button>
            <ErrorNotice error={start.error} />
            {job ? <JobProgress at={at} job={job} doing={t("Reading requests")} /> : null}
            {job?.kind === "next" && job.result ? (
              <p className="number text-soft text-xs" role="status">
                {tn(
                  job.result.rows.length,
                  "{count} text of {candidates} were put first in the queue, for {question}.",
                  "{count} texts of {candidates} were put first in the queue, for {question}.",
                  { candidates: job.result.candidates, question: job.result.question },
                )}
              </p>
            ) : null}
          </div>
        )}
      </Loaded>
    </Panel>
  )
}
