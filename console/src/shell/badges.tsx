/** Numbers beside the pages that want somebody: alerts that fire, and answers that wait for review. */
import { queryOptions, useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { reviewCountMax } from "../../../src/contract/question-sets/review.ts"
import { firingQuery } from "../alerts/alert-queries.ts"
import { api } from "../api.ts"
import { useOrganization } from "../session.ts"
import { setsKey } from "../sets/set-query.ts"
import type { Place } from "./places.ts"
import { t } from "../i18n/translate.ts"

const refreshMs = 60_000

export const reviewQueuesQuery = (org_id: string) =>
  queryOptions({
    queryKey: [...setsKey(org_id), "review queues"],
    refetchInterval: refreshMs,
    queryFn: async () => await api.listReviewQueues({ params: { org_id } }),
  })

interface PlaceCount {
  readonly count: number
  readonly words: string
  readonly urgent: boolean
}

export function useBadges(): Partial<Record<Place["to"], PlaceCount>> {
  const { id } = useOrganization()
  const { data: firing = 0 } = useQuery(firingQuery(id))
  const { data: queues = [] } = useQuery(reviewQueuesQuery(id))
  return {
    "/o/$orgId/alerts": { count: firing, words: t("firing"), urgent: true },
    "/o/$orgId/review": {
      count: queues.reduce((sum, { open }) => sum + open, 0),
      words: t("waiting"),
      urgent: false,
    },
  }
}

/** Describes the link in which it stands, which keeps its name. */
export function PlaceBadge({ id, badge }: { id: string; badge: PlaceCount | undefined }): ReactNode {
  if (!badge || badge.count === 0) return null
  const { count, words, urgent } = badge
  return (
    <span
      id={id}
      aria-hidden="true"
      className={`number rounded-full px-1.5 py-px text-xs font-medium ${urgent ? "bg-bad-wash text-bad" : "bg-sunken text-soft"}`}
    >
      {count < reviewCountMax ? count : `${reviewCountMax - 1}+`}
      <span className="sr-only"> {words}</span>
    </span>
  )
}
