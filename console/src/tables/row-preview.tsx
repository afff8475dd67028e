/** The first rows of a table, with the chosen columns first and marked. */
import type { ReactNode } from "react"
import { plural } from "../parts/format.ts"
import { Badge } from "../parts/page.tsx"
import type { Rows } from "./rows.ts"

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
        aria-label="Preview"
        tabIndex={0}
        className="border-line overflow-x-auto rounded-lg border"
      >
        <table className="w-full text-xs">
          <thead>
            <tr className="bg-sunken">
              {shown.map((name) => (
                <th key={name} scope="col" className="px-3 py-2 text-left font-medium whitespace-nowrap">
                  {name}
                  {chosen[name] ? (
                    <span className="ml-1.5">
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
          ? `The first ${rowsShownMax} of ${plural(rows.length, "row")}`
          : plural(rows.length, "row")}
        {columns.length > shown.length ? `; ${plural(columns.length - shown.length, "more column")}` : ""}
      </figcaption>
    </figure>
  )
}
