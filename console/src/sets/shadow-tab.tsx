/** A shadow: another version or model answers a share of the requests unseen, and the report says how it differs. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import type { QuestionSet, ShadowSettings } from "../../../src/contract/question-sets/sets.ts"
import { api, useWrite } from "../api.ts"
import { Confusion } from "../evaluate/result-charts.tsx"
import { usdOf } from "../models/usd.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { SelectField } from "../parts/field.tsx"
import { Form } from "../parts/form.tsx"
import { ago, count, day, decimal, exactDollars, moment, percent, smallDollars } from "../parts/format.ts"
import { NumberField } from "../parts/number-field.tsx"
import { Empty, Loaded, Notice, Panel } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { readNumber } from "../parts/typed-number.ts"
import { canDo } from "../playground/models.ts"
import { modelsQuery, useOrganization } from "../session.ts"
import { type SetAddress, setsKey } from "./set-query.ts"
import { useVersionList, versionOptions } from "./version-list.ts"
import { t } from "../i18n/translate.ts"

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
  shadow: { version, model, share, cost_max_day_usd },
}: {
  set: QuestionSet
  at: SetAddress
  shadow: ShadowSettings
}): ReactNode {
  const stop = useShadowWrite(at)
  const values = {
    who: whoAnswers(version, model),
    share: percent(share),
    name: set.name,
    limit: exactDollars(cost_max_day_usd),
  }
  return (
    <Panel title={t("Shadow")}>
      <div className="flex flex-col gap-3">
        <Notice
          tone="good"
          action={
            <Button small icon="stop" busy={stop.isPending} onClick={() => stop.mutate(null)}>
              {t("Stop")}
            </Button>
          }
        >
          {set.production_version === null
            ? t(
                "{who} answers {share} of the requests for “set:{name}” beside the latest version, for at most {limit} a day.",
                values,
              )
            : t(
                "{who} answers {share} of the requests for “set:{name}” beside version {published}, for at most {limit} a day.",
                { ...values, published: set.production_version },
              )}
        </Notice>
        <p className="text-soft text-xs">{unseen}</p>
        <ErrorNotice error={stop.error} />
      </div>
    </Panel>
  )
}

function whoAnswers(version: number | null, model: string | null): string {
  if (version === null) return model ?? t("The published version")
  return model === null
    ? t("Version {version}", { version })
    : t("Version {version} with {model}", { version, model })
}

const unseen = t(
  "Callers do not notice it. It is charged as any request, up to its budget a day; the limits and budgets of their keys are left alone. Only the answers are counted; texts are not kept.",
)

const shareBounds = { above: 0, max: 1, required: true }
const budgetBounds = { min: 0, required: true }

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
  const [budget, setBudget] = useState("1")
  const share = readNumber(percentage, "percentage", shareBounds).value
  const cents = readNumber(budget, "amount", budgetBounds).value
  const isOther = version !== sameVersion || model !== sameModel
  const start = useShadowWrite(at)
  const write = {
    ...start,
    mutate: () =>
      share !== null &&
      cents !== null &&
      start.mutate({
        version: version ? Number(version) : null,
        model: model || null,
        share,
        cost_max_day_usd: usdOf(cents / 100),
      }),
  }
  return (
    <Panel title={t("Start a shadow")}>
      <Form
        write={write}
        ready={isOther && share !== null && cents !== null}
        footer={
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <Button
              type="submit"
              kind="loud"
              icon="play"
              busy={start.isPending}
              disabled={!isOther || share === null || cents === null}
            >
              {t("Start shadow")}
            </Button>
            {isOther ? null : (
              <p className="text-soft text-xs">{t("Choose another version or another model.")}</p>
            )}
          </div>
        }
      >
        <p className="text-soft max-w-3xl text-sm">
          {t(
            "Another version or model answers a share of the real requests beside version {answering}, and the report below counts how often the answers differ. {unseen}",
            { answering, unseen },
          )}
        </p>
        <div className="grid gap-3 sm:grid-cols-2 lg:max-w-4xl lg:grid-cols-4">
          <SelectField
            label={t("Version")}
            value={version}
            options={[
              { value: sameVersion, label: t("Version {answering} (answers now)", { answering }) },
              ...versionOptions(versions, version),
            ]}
            onChange={(event) => setVersion(event.target.value)}
          />
          <SelectField
            label={t("Model")}
            value={model}
            options={[
              { value: sameModel, label: t("The version’s own") },
              ...models
                .filter((one) => canDo(one, "decisions"))
                .map(({ model_sku }) => ({ value: model_sku, label: model_sku })),
            ]}
            onChange={(event) => setModel(event.target.value)}
          />
          <NumberField
            kind="percentage"
            bounds={shareBounds}
            label={t("Share of requests, %")}
            value={percentage}
            onText={setPercentage}
          />
          <NumberField
            kind="amount"
            bounds={budgetBounds}
            label={t("At most a day, $")}
            value={budget}
            onText={setBudget}
          />
        </div>
      </Form>
    </Panel>
  )
}

function Report({ at, isRunning }: { at: SetAddress; isRunning: boolean }): ReactNode {
  const report = useQuery({
    queryKey: [...setsKey(at.org_id), "shadow", at.set_id],
    queryFn: async () => await api.getQuestionSetShadowReport({ params: at }),
    refetchInterval: isRunning ? refreshMs : false,
  })
  return (
    <Loaded query={report} label={t("Loading the report")}>
      {({ questions: rows, days }) =>
        rows.length === 0 && days.length === 0 ? (
          <div className="panel">
            <Empty icon="eye" title={isRunning ? t("Waiting for requests") : t("Nothing was compared yet")}>
              {isRunning
                ? t("As soon as requests for the set come, this table says how often the answers differ.")
                : t("Start a shadow to see how another version or model would answer your requests.")}
            </Empty>
          </div>
        ) : (
          <>
            <Table
              label={t("How the answers differ")}
              rows={rows}
              rowKey={(row) => `${row.question} ${row.version} ${row.shadow_version} ${row.shadow_model}`}
              columns={[
                {
                  name: t("Question"),
                  cell: ({ question }) => <span className="font-medium">{question}</span>,
                },
                {
                  name: t("Shadow"),
                  cell: (row) => (
                    <>
                      {t("Version {shadow} beside {version}", {
                        shadow: row.shadow_version,
                        version: row.version,
                      })}
                      <span className="text-soft block font-mono text-xs">{row.shadow_model}</span>
                    </>
                  ),
                },
                { name: t("Answers"), align: "right", cell: (row) => count(row.answers) },
                {
                  name: t("Agree"),
                  align: "right",
                  cell: (row) => (
                    <span className={row.flips > 0 ? "text-warn font-medium" : ""}>
                      {percent(row.agreement)}
                    </span>
                  ),
                },
                { name: t("Differ"), align: "right", cell: (row) => count(row.flips) },
                {
                  name: t("Kappa"),
                  align: "right",
                  cell: ({ kappa }) => (kappa === null ? t("too few") : decimal(kappa, 2)),
                },
                { name: t("Mean shift"), align: "right", cell: (row) => percent(row.mean_shift) },
                {
                  name: t("Abstained"),
                  align: "right",
                  cell: (row) => `${count(row.abstained)} → ${count(row.shadow_abstained)}`,
                },
                {
                  name: t("Last answer"),
                  cell: (row) => (
                    <span
                      className="whitespace-nowrap"
                      title={t("First {firstAt}", { firstAt: moment(row.first_at) })}
                    >
                      {ago(row.last_at)}
                    </span>
                  ),
                },
              ]}
            />
            <p className="text-soft text-xs">
              {t(
                "Kappa: how far two agree beyond what chance alone would give: 1 is always, 0 is as by chance. Mean shift: by how much the shadow’s probability differs on average. Of all results the newest 10,000 are kept.",
              )}
            </p>
            <div className="grid gap-4 lg:grid-cols-2">
              {rows.slice(0, confusionsShownMax).map((row) => (
                <Panel
                  key={`${row.question} ${row.version} ${row.shadow_version} ${row.shadow_model}`}
                  title={`${row.question}, ${row.shadow_model}`}
                >
                  <Confusion
                    {...confusionOf(row)}
                    caption={t("Rows: what was answered. Columns: the shadow.")}
                  />
                </Panel>
              ))}
            </div>
            <Days days={days} />
          </>
        )
      }
    </Loaded>
  )
}

type ShadowReport = Awaited<ReturnType<typeof api.getQuestionSetShadowReport>>

const confusionsShownMax = 20

const verdictText = (verdict: string | boolean | number | null): string =>
  verdict === null ? "abstains" : String(verdict)

function confusionOf({ confusion }: ShadowReport["questions"][number]) {
  const pairs = confusion.map(
    ({ verdict, shadow_verdict, answers }) =>
      [verdictText(verdict), verdictText(shadow_verdict), answers] as const,
  )
  const found = new Map<string, Map<string, number>>()
  for (const [own, other, answers] of pairs)
    found.set(own, (found.get(own) ?? new Map<string, number>()).set(other, answers))
  return { classes: [...new Set(pairs.flatMap(([own, other]) => [own, other]))].toSorted(), confusion: found }
}

function Days({ days }: { days: ShadowReport["days"] }): ReactNode {
  if (days.length === 0) return null
  return (
    <Table
      label={t("What the shadow cost")}
      rows={days}
      rowKey={(one) => one.day}
      columns={[
        { name: t("Day (UTC)"), cell: (one) => day(one.day) },
        { name: t("Answered"), align: "right", cell: ({ questions }) => count(questions) },
        { name: t("Not asked"), align: "right", cell: ({ unanswered }) => count(unanswered) },
        { name: t("Cost"), align: "right", cell: ({ cost_usd }) => smallDollars(Number(cost_usd)) },
      ]}
    />
  )
}
