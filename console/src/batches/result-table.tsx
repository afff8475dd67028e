/** The answers of a batch as a table: in the order of the rows, or the least sure first. */
import { type ReactNode, useState } from "react"
import { SequenceLink } from "../analytics/sequence-link.tsx"
import { Button } from "../parts/button.tsx"
import { Segments } from "../parts/field.tsx"
import { count, probability } from "../parts/format.ts"
import { Badge } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { type ResultRow, questionNames } from "./results.ts"
import { t } from "../i18n/translate.ts"

const pageRows = 20
const questionsShownMax = 6

const orders = [
  { value: "rows", label: t("In order") },
  { value: "doubtful", label: t("Least sure first") },
] as const
type Order = (typeof orders)[number]["value"]

const surenessOf = ({ answers }: ResultRow): number =>
  Math.min(1, ...answers.flatMap(({ probability: one }) => (one === null ? [] : [one])))

export function ResultTable({ rows }: { rows: readonly ResultRow[] }): ReactNode {
  const [order, setOrder] = useState<Order>("rows")
  const [shown, setShown] = useState(pageRows)
  const names = questionNames(rows)
  const sorted = order === "rows" ? rows : rows.toSorted((a, b) => surenessOf(a) - surenessOf(b))
  return (
    <section aria-label={t("Answers")} className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 className="text-sm font-semibold">{t("Answers ({rows})", { rows: count(rows.length) })}</h2>
        <Segments label={t("Order")} value={order} options={orders} onChange={setOrder} />
      </div>
      <Table
        label={t("Answers")}
        rows={sorted.slice(0, shown)}
        rowKey={({ name }) => name}
        columns={[
          {
            name: t("Row"),
            cell: ({ index, name }) => <RowName index={index} name={name} />,
          },
          ...(rows.some(({ text }) => text !== null)
            ? [
                {
                  name: t("Text"),
                  long: true,
                  cell: ({ text }: ResultRow) => (
                    <span dir="auto" className="line-clamp-3 max-w-xl">
                      {text}
                    </span>
                  ),
                },
              ]
            : []),
          ...names.slice(0, questionsShownMax).map((name) => ({
            name,
            cell: (row: ResultRow) => <AnswerCell row={row} name={name} />,
          })),
          {
            name: t("Request"),
            quiet: true,
            align: "right" as const,
            cell: ({ sequenceId }) =>
              sequenceId ? <SequenceLink id={sequenceId}>{t("request")}</SequenceLink> : null,
          },
        ]}
      />
      {names.length > questionsShownMax ? (
        <p className="text-soft text-xs">
          {t("The answers to the first {questionsShownMax} of {names} questions; the CSV has all.", {
            questionsShownMax,
            names: names.length,
          })}
        </p>
      ) : null}
      {rows.length > shown ? (
        <Button className="self-center" onClick={() => setShown(shown + pageRows)}>
          {t("Show more")}
        </Button>
      ) : null}
    </section>
  )
}

/** On a phone no heading says what the number counts. */
export function RowName({ index, name }: Pick<ResultRow, "index" | "name">): ReactNode {
  return (
    <span className="number text-soft text-xs">
      {index === null ? (
        name
      ) : (
        <>
          <span className="md:hidden">{t("Row")} </span>
          {count(index + 1)}
        </>
      )}
    </span>
  )
}

function AnswerCell({ row: { answers }, name }: { row: ResultRow; name: string }): ReactNode {
  const found = answers.find((answer) => answer.name === name)
  if (!found) return null
  return (
    <span className="number">
      <span className={found.probability === null ? "line-clamp-3" : "font-medium"}>{found.answer}</span>
      {found.probability === null ? null : (
        <span className="text-soft ms-1.5 text-xs whitespace-nowrap">{probability(found.probability)}</span>
      )}
      {found.verdict === null || found.verdict === found.answer ? null : (
        <span className="ms-1.5">
          <Badge tone="warn">{found.verdict}</Badge>
        </span>
      )}
    </span>
  )
}
