/** A table that becomes a list of cards on a phone. */
import type { MouseEvent, ReactNode } from "react"
import { t } from "../i18n/translate.ts"

interface Column<Row> {
  readonly name: string
  readonly cell: (row: Row) => ReactNode
  readonly align?: "right"
  /** Left out on a phone, where a row is a card. */
  readonly wide?: boolean
  /** Sentences: on a phone they stand below the column's name, from the left. */
  readonly long?: boolean
  /** Says the column's name to screen readers only. */
  readonly quiet?: boolean
}

/** The last column: a menu for those who may change the row. */
export const actionsColumn = <Row,>(allowed: boolean, menu: (row: Row) => ReactNode): Column<Row> => ({
  name: t("Actions"),
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
  onOpen,
  compact = false,
}: {
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  rowKey: (row: Row) => string
  /** The row that the address asks for: highlighted and scrolled to. */
  isMarked?: (row: Row) => boolean
  /** A click anywhere on a row; a link in it does the same for the keyboard. */
  onOpen?: (row: Row) => void
  /** On a phone two cells to a line, without their names: for long lists of things that speak for themselves. */
  compact?: boolean
}): ReactNode {
  return (
    <div className="panel relative overflow-x-auto">
      <table className="w-full text-sm max-md:block">
        <caption className="sr-only">{label}</caption>
        <thead className="max-md:sr-only">
          <tr className="border-line border-b">
            {columns.map((column) => (
              <th
                key={column.name}
                scope="col"
                className={`text-soft px-3 md:first:ps-4 md:last:pe-4 py-2.5 text-xs font-medium whitespace-nowrap ${column.align === "right" ? "text-end" : "text-start"}`}
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
              onClick={(event) => {
                if (onOpen && isPlainClick(event)) onOpen(row)
              }}
              className={`border-line hover:bg-sunken/50 relative border-b last:border-0 max-md:px-4 ${compact ? "max-md:grid max-md:grid-cols-[minmax(0,1fr)_auto] max-md:items-center max-md:gap-x-4 max-md:py-2" : "max-md:block max-md:py-3"} ${onOpen ? "cursor-pointer" : ""} ${isMarked?.(row) ? "bg-accent-wash" : ""}`}
            >
              {columns.map((column, index) => (
                <td
                  key={column.name}
                  className={`py-2.5 align-middle px-3 md:first:ps-4 md:last:pe-4 max-md:flex ${column.long ? "max-md:flex-col max-md:gap-1" : "max-md:items-baseline max-md:justify-between max-md:gap-4"} max-md:px-0 max-md:py-1 ${column.wide ? "max-md:hidden" : ""} ${column.align === "right" ? "text-end" : ""} ${column.quiet ? "max-md:absolute max-md:top-2 max-md:end-3" : ""}`}
                >
                  {column.quiet || index === 0 || compact ? null : (
                    <span className="text-soft shrink-0 text-xs md:hidden" aria-hidden="true">
                      {column.name}
                    </span>
                  )}
                  <div
                    className={`min-w-0 wrap-anywhere ${index === 0 ? "" : wholeWords} ${column.long ? "" : phoneAlign(index, compact)}`}
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

/** Only the first column breaks words to make room; in others a word breaks where it alone is too long. */
const wholeWords = "md:max-w-sm md:wrap-break-word"

function phoneAlign(index: number, compact: boolean): string {
  if (compact) return index % 2 === 0 ? "" : "max-md:ms-auto max-md:text-end"
  return index === 0 ? "max-md:pe-8" : "max-md:text-end"
}

const scrollTo = (row: HTMLElement | null): void => row?.scrollIntoView({ block: "nearest" })

/** Not on a link or control of the row, not with a key held, and not the end of selecting text. */
function isPlainClick(event: MouseEvent): boolean {
  const { target, ctrlKey, metaKey, shiftKey } = event
  if (ctrlKey || metaKey || shiftKey || getSelection()?.type === "Range") return false
  return target instanceof Element && target.closest("a, button, select, input") === null
}
