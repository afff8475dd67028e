/** Two versions side by side: what changed, and which answers flip. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import type { QuestionSet, QuestionSetVersionItem } from "../../../src/contract/question-sets/sets.ts"
import { api, useWrite } from "../api.ts"
import { breakable } from "../parts/breakable.tsx"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { SelectField } from "../parts/field.tsx"
import { Loaded, Panel } from "../parts/page.tsx"
import { numberText } from "../parts/typed-number.ts"
import { FlipTables } from "./flip-tables.tsx"
import { JobProgress, isUnderWay, useNewestJob } from "./job.tsx"
import { type SetAddress, jobsKey, versionsKey } from "./set-query.ts"
import { versionOptions } from "./version-list.ts"
import { t, tn } from "../i18n/translate.ts"

export function Comparison({
  set,
  at,
  versions,
}: {
  set: QuestionSet
  at: SetAddress
  versions: readonly QuestionSetVersionItem[]
}): ReactNode {
  const published = set.production_version
  const before = published !== null && published !== set.latest_version ? published : set.latest_version - 1
  const [from, setFrom] = useState(String(before))
  const [to, setTo] = useState(String(set.latest_version))
  return (
    <Panel title={t("Compare two versions")}>
      <div className="flex flex-col gap-4">
        <div className="grid max-w-md gap-3 sm:grid-cols-2">
          <SelectField
            label={t("From")}
            value={from}
            options={versionOptions(versions, from)}
            onChange={(event) => setFrom(event.target.value)}
          />
          <SelectField
            label={t("To")}
            value={to}
            options={versionOptions(versions, to)}
            onChange={(event) => setTo(event.target.value)}
          />
        </div>
        <Difference at={at} from={from} to={to} />
        <Flips set={set} at={at} from={from} to={to} />
      </div>
    </Panel>
  )
}

function Difference({ at, from, to }: { at: SetAddress; from: string; to: string }): ReactNode {
  const query = useQuery({
    queryKey: [...versionsKey(at), "difference", from, to],
    queryFn: async () => await api.compareQuestionSetVersions({ params: at, query: { from, to } }),
  })
  return (
    <Loaded query={query} label={t("Loading the difference")}>
      {({ changes }) =>
        changes.length === 0 ? (
          <p className="text-soft text-sm">{t("Nothing differs.")}</p>
        ) : (
          <dl aria-label={t("What changed")} className="divide-line border-line divide-y border-y text-sm">
            {changes.map(({ path, before, after }) => (
              <div key={path} className="grid gap-x-4 gap-y-1 py-2 sm:grid-cols-[12rem_1fr]">
                <dt className="font-mono text-xs wrap-anywhere">
                  {breakable(path.replace(/\.artefact$/, ` (${t("what was taught")})`))}
                </dt>
                <dd className="flex min-w-0 flex-col gap-0.5 font-mono text-xs wrap-anywhere">
                  <del className="text-bad line-clamp-4 no-underline">− {written(path, before)}</del>
                  <ins className="text-accent line-clamp-4 no-underline">+ {written(path, after)}</ins>
                </dd>
              </div>
            ))}
          </dl>
        )
      }
    </Loaded>
  )
}

const hashShown = 12

function written(path: string, value: unknown): string {
  if (value === null || value === undefined) return t("none")
  // What was taught is named by a hash; its beginning tells two apart.
  if (path.endsWith(".artefact") && typeof value === "string")
    return t("taught {hash}", { hash: value.slice(0, hashShown) })
  if (/\.(?:threshold|target_accuracy)$/.test(path) && typeof value === "number")
    return `${numberText(value, "percentage")}%`
  return typeof value === "string" ? value : JSON.stringify(value)
}

function Flips({
  set,
  at,
  from,
  to,
}: {
  set: QuestionSet
  at: SetAddress
  from: string
  to: string
}): ReactNode {
  const newest = useNewestJob(at, "compare")
  const job = newest.data
  const start = useWrite(
    async () => await api.runQuestionSetComparison({ params: at, body: { from, to } }),
    [jobsKey(at)],
  )
  const { examples, cases } = set.counts
  const texts = Math.min(examples, 1000) + cases
  const result = job?.kind === "compare" ? job.result : null
  const fits = result !== null && String(result.from) === from && String(result.to) === to
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-3">
        <Button
          icon="split"
          disabled={texts === 0 || from === to || (job ? isUnderWay(job) : false)}
          busy={start.isPending}
          onClick={() => start.mutate(undefined)}
        >
          {t("Compare the answers")}
        </Button>
        <p className="text-soft flex-1 basis-56 text-xs">
          {texts === 0
            ? t("Add examples first: both versions are asked about them.")
            : tn(
                texts,
                "Asks both versions about {count} text; each is charged as a request.",
                "Asks both versions about {count} texts; each is charged as a request.",
              )}
        </p>
      </div>
      <ErrorNotice error={start.error} />
      {job && (isUnderWay(job) || job.state === "failed") ? (
        <JobProgress at={at} job={job} doing={t("Asking both versions")} />
      ) : null}
      {fits ? <FlipTables set={set} at={at} result={result} /> : null}
    </div>
  )
}
