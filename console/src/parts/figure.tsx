/** A number or word under its name, for lists of such (`dl`). */
import type { ReactNode } from "react"

const looks = {
  loud: "text-lg font-semibold",
  firm: "truncate text-sm font-medium",
  plain: "text-sm wrap-anywhere",
} as const

export function Figure({
  name,
  value,
  look = "loud",
  about,
  framed = false,
}: {
  name: string
  value: string
  /** What it says, in a sentence. */
  about?: string
  look?: keyof typeof looks
  framed?: boolean
}): ReactNode {
  return (
    <div className={`min-w-0 ${framed ? "panel px-3 py-2.5" : ""}`}>
      <dt className="label">{name}</dt>
      <dd className={looks[look]}>{value}</dd>
      {about ? <dd className="text-soft text-xs font-normal">{about}</dd> : null}
    </div>
  )
}
