/** What a cascade sent on: how often, what it cost, and what it changed; by stage and by day. */
import { useQuery } from "@tanstack/react-query"
import { useParams } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { CascadeDay } from "../../../src/contract/platform/virtual-models.ts"
import { api } from "../api.ts"
import { Figure } from "../parts/figure.tsx"
import { count, day, exactDollars, percent, smallDollars } from "../parts/format.ts"
import { Empty, Loaded, Page } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { modelsQuery, useOrganization } from "../session.ts"
import { t } from "../i18n/translate.ts"

interface Sums {
  readonly requests: number
  readonly questions: number
  readonly changed: number
  readonly unanswered: number
  readonly cost: number
}

const none: Sums = { requests: 0, questions: 0, changed: 0, unanswered: 0, cost: 0 }

const sumOf = (days: readonly CascadeDay[]): Sums =>
  days.reduce<Sums>(
    (sum, one) => ({
      requests: sum.requests + one.requests,
      questions: sum.questions + one.questions,
      changed: sum.changed + one.changed,
      unanswered: sum.unanswered + one.unanswered,
      cost: sum.cost + Number(one.cost_usd),
    }),
    none,
  )

const share = (part: number, whole: number): string => (whole === 0 ? "none" : percent(part / whole))

const perThousand = (cost: number, questions: number): string =>
  questions === 0 ? "none" : smallDollars((cost / questions) * 1000)

export function CascadePage(): ReactNode {
  const { id: org_id } = useOrganization()
  const { name = "" } = useParams({ strict: false })
  const query = useQuery({
    queryKey: ["cascade-days", org_id, name],
    queryFn: async () => await api.listCascadeDays({ params: { org_id }, query: { cascade: name } }),
  })
  const cascade = useQuery(modelsQuery(org_id)).data?.find(({ model_sku }) => model_sku === name)?.virtual
    ?.cascade
  return (
    <Page
      title={name}
      about={t(
        "What this cascade sent on to its further models in the last month: how often, what it cost, and how many answers it changed.",
      )}
    >
      <Loaded query={query} label={t("Loading the cascade")}>
        {(days) =>
          days.length === 0 ? (
            <div className="panel">
              <Empty icon="layers" title={t("Nothing yet")}>
                {t("Requests that name {name} as their model are counted here within seconds.", { name })}
              </Empty>
            </div>
          ) : (
            <Escalations
              days={days}
              models={cascade?.models ?? []}
              dayMax={cascade?.cost_max_day_usd ?? null}
            />
          )
        }
      </Loaded>
    </Page>
  )
}

function Escalations({
  days,
  models,
  dayMax,
}: {
  days: readonly CascadeDay[]
  models: readonly string[]
  dayMax: string | null
}): ReactNode {
  const asked = sumOf(days.filter(({ stage }) => stage === 0))
  const sent = sumOf(days.filter(({ stage }) => stage > 0))
  const dates = [...new Set(days.map((one) => one.day))]
  const stages = [...new Set(days.map(({ stage }) => stage))].toSorted((a, b) => a - b)
  return (
    <>
      <dl className="grid grid-cols-2 gap-3 md:grid-cols-4">
        <Figure framed name={t("Questions")} value={count(asked.questions)} />
        <Figure framed name={t("Sent on")} value={share(sent.questions, asked.questions)} />
        <Figure
          framed
          name={t("Answers changed")}
          value={`${count(sent.changed)} (${share(sent.changed, sent.questions)})`}
        />
        <Figure
          framed
          name={
            dayMax === null
              ? t("Cost of what was sent on")
              : t("Cost of what was sent on, at most {limit} a day", { limit: exactDollars(dayMax) })
          }
          value={smallDollars(sent.cost)}
        />
      </dl>
      <Table
        label={t("By model")}
        rows={stages.map((stage) => ({ stage, ...sumOf(days.filter((one) => one.stage === stage)) }))}
        rowKey={({ stage }) => String(stage)}
        columns={[
          {
            name: t("Model"),
            cell: ({ stage }) => (
              <span className="font-mono">{models[stage] ?? t("model {stage}", { stage: stage + 1 })}</span>
            ),
          },
          { name: t("Questions"), align: "right", cell: ({ questions }) => count(questions) },
          {
            name: t("Share of questions"),
            align: "right",
            cell: ({ questions }) => share(questions, asked.questions),
          },
          {
            name: t("Answers changed"),
            align: "right",
            cell: ({ stage, changed }) => (stage === 0 ? "" : count(changed)),
          },
          {
            name: t("Left as they were"),
            align: "right",
            cell: ({ stage, unanswered }) => (stage === 0 ? "" : count(unanswered)),
          },
          { name: t("Cost"), align: "right", cell: ({ cost }) => smallDollars(cost) },
          {
            name: t("A thousand questions"),
            align: "right",
            cell: ({ cost, questions }) => perThousand(cost, questions),
          },
        ]}
      />
      <p className="text-soft text-xs">
        {t(
          "Left as they were: the model failed, or a budget was spent, so the answers before it stood, with a warning in the header of the answer.",
        )}
      </p>
      <Table
        label={t("By day")}
        rows={dates.map((date) => {
          const own = days.filter((one) => one.day === date)
          return {
            date,
            first: sumOf(own.filter(({ stage }) => stage === 0)),
            further: sumOf(own.filter(({ stage }) => stage > 0)),
          }
        })}
        rowKey={({ date }) => date}
        columns={[
          { name: t("Day (UTC)"), cell: ({ date }) => day(date) },
          { name: t("Questions"), align: "right", cell: ({ first }) => count(first.questions) },
          {
            name: t("Sent on"),
            align: "right",
            cell: ({ first, further }) => share(further.questions, first.questions),
          },
          { name: t("Answers changed"), align: "right", cell: ({ further }) => count(further.changed) },
          { name: t("Left as they were"), align: "right", cell: ({ further }) => count(further.unanswered) },
          {
            name: t("Cost of what was sent on"),
            align: "right",
            cell: ({ further }) => smallDollars(further.cost),
          },
        ]}
      />
    </>
  )
}
