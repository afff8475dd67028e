/** A link to another tab of the same set, within a sentence. */
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { useOrganization } from "../session.ts"
import type { SetTab } from "./set-tabs.ts"

export function TabLink({
  set,
  tab,
  children,
}: {
  set: QuestionSet
  tab: SetTab
  children: ReactNode
}): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <Link
      to="/o/$orgId/sets/$setName"
      params={{ orgId, setName: set.name }}
      search={{ tab }}
      className="underline underline-offset-2"
    >
      {children}
    </Link>
  )
}
