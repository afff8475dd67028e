/** The first rows of a table, with the chosen columns first and marked. */
import type { ReactNode } from "react"
import { Badge } from "../parts/page.tsx"
import type { Rows } from "./rows.ts"
import { t, tn } from "../i18n/translate.ts"

const rowsShownMax = 5
const columnsShownMax = 8

export function RowPreview({
  rows: { columns, rows },
  chosen,
}: {
  rows: Rows
  /** What is made of each chosen column, by its name. */
  chosen: Readonly<Record<string, string>>
}): ReactNode {
  const first = columns.filter((name) => name in chosen)
  const shown = [...first, ...columns.filter((name) => !(name in chosen))].slice(0, columnsShownMax)
  return (
    <figure className="flex min-w-0 flex-col gap-1.5">
      <div
        role="group"
        aria-label={t("Preview")}
        tabIndex={0}
        className="border-line overflow-x-auto rounded-lg border"
      >
        <table className="w-full text-xs">
          <thead>
            <tr className="bg-sunken">
              {shown.map((name) => (
                <th key={name} scope="col" className="px-3 py-2 text-start font-medium whitespace-nowrap">
                  {name}
                  {chosen[name] ? (
                    <span className="ms-1.5">
                      <Badge tone="good">{chosen[name]}</Badge>
                    </span>
                  ) : null}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, rowsShownMax).map((row, index) => (
              <tr key={index} className="border-line border-t align-top">
                {shown.map((name) => (
                  <td key={name} dir="auto" className={name in chosen ? "px-3 py-2" : "text-soft px-3 py-2"}>
                    <span className="line-clamp-2 max-w-96 min-w-16 wrap-anywhere">{row[name] ?? ""}</span>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <figcaption className="text-soft text-xs">
        {rows.length > rowsShownMax
          ? tn(
              rows.length,
              "The first {rowsShownMax} of {count} row",
              "The first {rowsShownMax} of {count} rows",
              { rowsShownMax },
            )
          : tn(rows.length, "{count} row", "{count} rows")}
        {columns.length > shown.length
          ? `; ${tn(columns.length - shown.length, "{count} more column", "{count} more columns")}`
          : ""}
      </figcaption>
    </figure>
  )
}
