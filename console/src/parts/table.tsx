/** A table that becomes a list of cards on a phone. */
import type { ReactNode } from "react"

interface Column<Row> {
  readonly name: string
  readonly cell: (row: Row) => ReactNode
  readonly align?: "right"
  /** Says the column's name to screen readers only. */
  readonly quiet?: boolean
}

/** The last column: a menu for those who may change the row. */
export const actionsColumn = <Row,>(allowed: boolean, menu: (row: Row) => ReactNode): Column<Row> => ({
  name: "Actions",
  quiet: true,
  align: "right",
  cell: (row) => (allowed ? menu(row) : null),
})

export function Table<Row>({
  label,
  columns,
  rows,
  rowKey,
  isMarked,
}: {
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  rowKey: (row: Row) => string
  /** The row that the address asks for: highlighted and scrolled to. */
  isMarked?: (row: Row) => boolean
}): ReactNode {
  return (
    <div className="panel overflow-x-auto">
      <table className="w-full text-sm max-md:block">
        <caption className="sr-only">{label}</caption>
        <thead className="max-md:sr-only">
          <tr className="border-line border-b">
            {columns.map((column) => (
              <th
                key={column.name}
                scope="col"
                className={`text-soft px-4 py-2.5 text-xs font-medium whitespace-nowrap ${column.align === "right" ? "text-right" : "text-left"}`}
              >
                {column.quiet ? <span className="sr-only">{column.name}</span> : column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="max-md:block">
          {rows.map((row) => (
            <tr
              key={rowKey(row)}
              aria-current={isMarked?.(row) ? "true" : undefined}
              ref={isMarked?.(row) ? scrollTo : undefined}
              className={`border-line hover:bg-sunken/50 relative border-b last:border-0 max-md:block max-md:px-4 max-md:py-3 ${isMarked?.(row) ? "bg-accent-wash" : ""}`}
            >
              {columns.map((column, index) => (
                <td
                  key={column.name}
                  className={`px-4 py-2.5 align-middle max-md:flex max-md:items-baseline max-md:justify-between max-md:gap-4 max-md:px-0 max-md:py-1 ${column.align === "right" ? "text-right" : ""} ${column.quiet ? "max-md:absolute max-md:top-2 max-md:right-3" : ""}`}
                >
                  {column.quiet || index === 0 ? null : (
                    <span className="text-soft shrink-0 text-xs md:hidden" aria-hidden="true">
                      {column.name}
                    </span>
                  )}
                  <div
                    className={`min-w-0 wrap-anywhere ${index === 0 ? "max-md:pr-8" : "max-md:text-right"}`}
                  >
                    {column.cell(row)}
                  </div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const scrollTo = (row: HTMLElement | null): void => row?.scrollIntoView({ block: "nearest" })
