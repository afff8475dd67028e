/** Teaching: started, followed and cancelled here, with what it found for each question. */
import { type ReactNode, useState } from "react"
import type { TeachResult } from "../../../src/contract/question-sets/jobs.ts"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { NumberField } from "../parts/number-field.tsx"
import { Loaded, Notice, Panel } from "../parts/page.tsx"
import { readNumber } from "../parts/typed-number.ts"
import { JobProgress, isUnderWay, useNewestJob } from "./job.tsx"
import { Publish } from "./publish.tsx"
import { type SetAddress, jobsKey } from "./set-query.ts"
import { TabLink } from "./tab-link.tsx"
import { TaughtCascade } from "./taught-cascade.tsx"
import { TaughtQuestion } from "./taught-question.tsx"
import { T } from "../i18n/sentence.tsx"
import { t, tn } from "../i18n/translate.ts"

export function TeachTab({ set, at }: { set: QuestionSet; at: SetAddress }): ReactNode {
  const newest = useNewestJob(at, "teach")
  return (
    <Loaded query={newest} label={t("Loading the last teaching")}>
      {(job) => {
        const result = job?.kind === "teach" && job.state === "succeeded" ? job.result : null
        const busy = job !== null && isUnderWay(job)
        return (
          <div className="flex flex-col gap-4">
            <Start set={set} at={at} busy={busy}>
              {job ? (
                <JobProgress at={at} job={job} doing={t("Asking the model about the examples")} />
              ) : null}
              {result ? <Ended set={set} at={at} result={result} /> : null}
            </Start>
            {result?.cascade ? <TaughtCascade cascade={result.cascade} questions={result.questions} /> : null}
            {set.questions.map((asked) => (
              <TaughtQuestion
                key={asked.name}
                at={at}
                asked={asked}
                outcome={result?.questions.find(({ name }) => name === asked.name) ?? null}
              />
            ))}
          </div>
        )
      }}
    </Loaded>
  )
}

/** From 50 % on there is something to promise, and certainty cannot be. */
export const targetBounds = { above: 0.5, below: 1 }

function Start({
  set,
  at,
  busy,
  children,
}: {
  set: QuestionSet
  at: SetAddress
  busy: boolean
  children: ReactNode
}): ReactNode {
  const [target, setTarget] = useState("")
  const { value: wanted, problem } = readNumber(target, "percentage", targetBounds)
  const start = useWrite(
    async () =>
      await api.teachQuestionSet({
        params: at,
        body: wanted === null ? {} : { target_accuracy: wanted },
      }),
    [jobsKey(at)],
  )
  const { examples } = set.counts
  return (
    <Panel title={t("Teach from the examples")}>
      <div className="flex flex-col gap-4">
        <p className="text-soft max-w-3xl text-sm">
          {t(
            "The model is asked about every labelled example, and what it gets wrong corrects its answers. The result is a new version; what the set answers stays as it is until you publish it. Each example is charged as a request.",
          )}
        </p>
        <div className="flex flex-wrap items-start gap-3">
          <div className="w-48">
            <NumberField
              kind="percentage"
              bounds={targetBounds}
              label={t("Target accuracy, % (optional)")}
              placeholder="95"
              value={target}
              onText={setTarget}
            />
          </div>
          <Button
            kind="loud"
            icon="play"
            className="sm:mt-5"
            disabled={busy || examples === 0 || problem !== null}
            busy={start.isPending}
            onClick={() => start.mutate(undefined)}
          >
            {examples === 0
              ? t("Teach")
              : tn(examples, "Teach from {count} example", "Teach from {count} examples")}
          </Button>
        </div>
        {examples === 0 ? (
          <Notice tone="info">
            <T
              text="Add labelled texts under <tabLink>Examples</tabLink> first: about 100 teach a question much."
              tabLink={(children) => (
                <TabLink set={set} tab="examples">
                  {children}
                </TabLink>
              )}
            />
          </Notice>
        ) : null}
        {set.outdated ? (
          <Notice tone="warn">
            {t(
              "What this set was taught fits another version of {model}. That version goes on answering where it is still there. Teach again to be answered by today’s; “umpire sets teach --all” does so for every such set.",
              { model: set.model },
            )}
          </Notice>
        ) : null}
        <ErrorNotice error={start.error} />
        {children}
      </div>
    </Panel>
  )
}

export function Ended({
  set,
  at,
  result: { version },
}: {
  set: QuestionSet
  at: SetAddress
  result: TeachResult
}): ReactNode {
  const [publishing, setPublishing] = useState(false)
  if (version === null)
    return <Notice tone="warn">{t("No question could be taught; each says why below.")}</Notice>
  if (set.production_version === version)
    return <Notice tone="good">{t("Version {version} was taught, and is published.", { version })}</Notice>
  if (set.latest_version !== version)
    return (
      <Notice tone="info">
        {t("Version {version} was taught from the examples of then.", { version })}{" "}
        {set.production_version === null
          ? t("Version {latest} is the latest now.", { latest: set.latest_version })
          : t("Version {latest} is the latest now, and version {published} is published.", {
              latest: set.latest_version,
              published: set.production_version,
            })}
      </Notice>
    )
  return (
    <>
      <Notice
        tone="good"
        action={
          <Button small onClick={() => setPublishing(true)}>
            {t("Publish version {version}", { version })}
          </Button>
        }
      >
        {t("Version {version} was taught.", { version })}{" "}
        {set.production_version === null
          ? t("Look at the figures, then publish it.")
          : t("Look at the figures, then publish it: version {published} goes on answering until then.", {
              published: set.production_version,
            })}
      </Notice>
      {publishing ? (
        <Publish set={set} at={at} version={version} onClose={() => setPublishing(false)} />
      ) : null}
    </>
  )
}
