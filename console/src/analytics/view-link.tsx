/** A link to the analytics page with something of its view changed. */
import { Link } from "@tanstack/react-router"
import type { ComponentProps, ReactNode } from "react"
import { useOrganization } from "../session.ts"
import { type View, writeView } from "./view.ts"

export function ViewLink({
  view,
  change,
  ...rest
}: {
  view: View
  change: Partial<View>
  children?: ReactNode
} & Pick<ComponentProps<"a">, "className" | "title" | "aria-label">): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <Link
      to="/o/$orgId/analytics"
      params={{ orgId }}
      search={writeView({ ...view, ...change })}
      resetScroll={false}
      {...rest}
    />
  )
}

/** The filters with one more. */
export const filtered = ({ filters }: View, filter: string): Pick<View, "filters"> => ({
  filters: [...new Set([...filters, filter])],
})
