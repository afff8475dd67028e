/** What a change changed: every field before and after, with the differences marked. */
import type { ReactNode } from "react"
import { breakable } from "../parts/breakable.tsx"
import { changedFields, isUnset } from "./audit-fields.ts"
import { t } from "../i18n/translate.ts"

export function Differences({ before, after }: { before: unknown; after: unknown }): ReactNode {
  const isNew = before === null || before === undefined
  const isGone = after === null || after === undefined
  const fields = changedFields(before, after).filter((field) => !((isNew || isGone) && isUnset(field)))
  if (fields.length === 0) return null
  return (
    <div className="border-line bg-panel overflow-x-auto rounded-md border">
      <table className="w-full font-mono">
        <caption className="sr-only">{t("What changed")}</caption>
        <thead>
          <tr className="border-line text-soft border-b text-start font-sans">
            <th scope="col" className="w-1/3 px-2.5 py-1.5 font-medium md:w-1/4">
              {t("Field")}
            </th>
            {isNew ? null : (
              <th scope="col" className="px-2.5 py-1.5 font-medium">
                {t("Before")}
              </th>
            )}
            {isGone ? null : (
              <th scope="col" className="px-2.5 py-1.5 font-medium">
                {t("After")}
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {fields.map((field) => (
            <tr key={field.field} className="border-line border-b align-top last:border-0">
              <th scope="row" className="text-soft px-2.5 py-1.5 text-start font-normal wrap-anywhere">
                {breakable(field.field)}
              </th>
              {isNew ? null : (
                <td className="px-2.5 py-1.5 wrap-anywhere">
                  {field.before === null ? null : field.changed ? (
                    <del className="bg-bad-wash text-bad rounded-sm px-1">{field.before}</del>
                  ) : (
                    field.before
                  )}
                </td>
              )}
              {isGone ? null : (
                <td className="px-2.5 py-1.5 wrap-anywhere">
                  {field.after === null ? null : field.changed && !isNew ? (
                    <ins className="bg-accent-wash text-accent rounded-sm px-1 no-underline">
                      {field.after}
                    </ins>
                  ) : (
                    field.after
                  )}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
