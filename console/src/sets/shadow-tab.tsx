/** A shadow: another version or model answers a share of the requests unseen, and the report says how it differs. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import type { QuestionSet, ShadowSettings } from "../../../src/contract/question-sets/sets.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { SelectField, TextField } from "../parts/field.tsx"
import { Form } from "../parts/form.tsx"
import { ago, count, moment, percent } from "../parts/format.ts"
import { Empty, Loaded, Notice, Panel } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { canDo } from "../playground/models.ts"
import { modelsQuery, useOrganization } from "../session.ts"
import { type SetAddress, setsKey } from "./set-query.ts"
import { useVersionList, versionOptions } from "./version-list.ts"

const refreshMs = 5000

export function ShadowTab({ set, at }: { set: QuestionSet; at: SetAddress }): ReactNode {
  return (
    <div className="flex flex-col gap-4">
      {set.shadow ? <Running set={set} at={at} shadow={set.shadow} /> : <Start set={set} at={at} />}
      <Report at={at} isRunning={set.shadow !== null} />
    </div>
  )
}

const useShadowWrite = (at: SetAddress) =>
  useWrite(
    async (shadow: ShadowSettings | null) => await api.updateQuestionSet({ params: at, body: { shadow } }),
    [setsKey(at.org_id)],
  )

function Running({
  set,
  at,
  shadow: { version, model, share },
}: {
  set: QuestionSet
  at: SetAddress
  shadow: ShadowSettings
}): ReactNode {
  const stop = useShadowWrite(at)
  const who = [version === null ? null : `Version ${version}`, model].filter(Boolean).join(" with ")
  return (
    <Panel title="Shadow">
      <div className="flex flex-col gap-3">
        <Notice
          tone="good"
          action={
            <Button small icon="stop" busy={stop.isPending} onClick={() => stop.mutate(null)}>
              Stop
            </Button>
          }
        >
          {who || "The published version"} answers {percent(share)} of the requests for “set:{set.name}”
          beside{" "}
          {set.production_version === null ? "the latest version" : `version ${set.production_version}`}.
        </Notice>
        <p className="text-soft text-xs">{unseen}</p>
        <ErrorNotice error={stop.error} />
      </div>
    </Panel>
  )
}

const unseen =
  "Callers do not notice it and nothing is charged. Only the answers are counted; texts are not kept."

/** More than nothing, and at most everything. */
function shareOf(text: string): number | null {
  const share = Number(text) / 100
  return text.trim() !== "" && share > 0 && share <= 1 ? share : null
}

const sameVersion = ""
const sameModel = ""

function Start({ set, at }: { set: QuestionSet; at: SetAddress }): ReactNode {
  const { id: orgId } = useOrganization()
  const { data: models = [] } = useQuery(modelsQuery(orgId))
  const answering = set.production_version ?? set.latest_version
  const [version, setVersion] = useState(
    answering === set.latest_version ? sameVersion : String(set.latest_version),
  )
  const [model, setModel] = useState(sameModel)
  const [percentage, setPercentage] = useState("10")
  const versions = useVersionList(at).filter((one) => one.version !== answering)
  const share = shareOf(percentage)
  const isOther = version !== sameVersion || model !== sameModel
  const start = useShadowWrite(at)
  const write = {
    ...start,
    mutate: () =>
      share !== null &&
      start.mutate({ version: version ? Number(version) : null, model: model || null, share }),
  }
  return (
    <Panel title="Start a shadow">
      <Form
        write={write}
        ready={isOther && share !== null}
        footer={
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <Button
              type="submit"
              kind="loud"
              icon="play"
              busy={start.isPending}
              disabled={!isOther || share === null}
            >
              Start shadow
            </Button>
            {isOther ? null : <p className="text-soft text-xs">Choose another version or another model.</p>}
          </div>
        }
      >
        <p className="text-soft max-w-3xl text-sm">
          Another version or model answers a share of the real requests beside version {answering}, and the
          report below counts how often the answers differ. {unseen}
        </p>
        <div className="grid gap-3 sm:grid-cols-3 lg:max-w-3xl">
          <SelectField
            label="Version"
            value={version}
            options={[
              { value: sameVersion, label: `Version ${answering} (answers now)` },
              ...versionOptions(versions, version),
            ]}
            onChange={(event) => setVersion(event.target.value)}
          />
          <SelectField
            label="Model"
            value={model}
            options={[
              { value: sameModel, label: "The version’s own" },
              ...models
                .filter((one) => canDo(one, "decisions"))
                .map(({ model_sku }) => ({ value: model_sku, label: model_sku })),
            ]}
            onChange={(event) => setModel(event.target.value)}
          />
          <TextField
            label="Share of requests, %"
            inputMode="decimal"
            value={percentage}
            error={share === null ? "More than 0 and at most 100." : null}
            onChange={(event) => setPercentage(event.target.value)}
          />
        </div>
      </Form>
    </Panel>
  )
}

function Report({ at, isRunning }: { at: SetAddress; isRunning: boolean }): ReactNode {
  const report = useQuery({
    queryKey: [...setsKey(at.org_id), "shadow", at.set_id],
    queryFn: async () => (await api.getQuestionSetShadowReport({ params: at })).questions,
    refetchInterval: isRunning ? refreshMs : false,
  })
  return (
    <Loaded query={report} what="the report">
      {(rows) =>
        rows.length === 0 ? (
          <div className="panel">
            <Empty icon="eye" title={isRunning ? "Waiting for requests" : "Nothing was compared yet"}>
              {isRunning
                ? "As soon as requests for the set come, this table says how often the answers differ."
                : "Start a shadow to see how another version or model would answer your requests."}
            </Empty>
          </div>
        ) : (
          <>
            <Table
              label="How the answers differ"
              rows={rows}
              rowKey={(row) => `${row.question} ${row.version} ${row.shadow_version} ${row.shadow_model}`}
              columns={[
                { name: "Question", cell: ({ question }) => <span className="font-medium">{question}</span> },
                {
                  name: "Shadow",
                  cell: (row) => (
                    <>
                      Version {row.shadow_version} beside {row.version}
                      <span className="text-soft block font-mono text-xs">{row.shadow_model}</span>
                    </>
                  ),
                },
                { name: "Answers", align: "right", cell: (row) => count(row.answers) },
                {
                  name: "Differ",
                  align: "right",
                  cell: (row) => (
                    <span className={row.flips > 0 ? "text-warn font-medium" : ""}>
                      {count(row.flips)} ({percent(row.flips / row.answers)})
                    </span>
                  ),
                },
                { name: "Mean shift", align: "right", cell: (row) => percent(row.mean_shift) },
                {
                  name: "Abstained",
                  align: "right",
                  cell: (row) => `${count(row.abstained)} → ${count(row.shadow_abstained)}`,
                },
                {
                  name: "Last answer",
                  cell: (row) => (
                    <span className="whitespace-nowrap" title={`First ${moment(row.first_at)}`}>
                      {ago(row.last_at)}
                    </span>
                  ),
                },
              ]}
            />
            <p className="text-soft text-xs">
              Mean shift: by how much the shadow’s probability differs on average. Of all results the newest
              10,000 are kept.
            </p>
          </>
        )
      }
    </Loaded>
  )
}
