/** Review over all sets: which have answers that wait, and the queue of one of them. */
import { useQuery } from "@tanstack/react-query"
import { Link, useSearch } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { type ReviewQueue, reviewCountMax } from "../../../src/contract/question-sets/review.ts"
import { Empty, Loaded, Page } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { reviewQueuesQuery } from "../shell/badges.tsx"
import { ReviewTab } from "./review-tab.tsx"
import { setQuery } from "./set-query.ts"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

export function ReviewPage(): ReactNode {
  const { id: org_id } = useOrganization()
  const queues = useQuery(reviewQueuesQuery(org_id))
  return (
    <Page
      title={t("Review")}
      about={t(
        "Answers that your question sets are not sure of. You decide with a key press, and your labels become examples of the set.",
      )}
    >
      <Loaded query={queues} label={t("Loading what waits for review")}>
        {(rows) => <Queues queues={rows} />}
      </Loaded>
    </Page>
  )
}

function Queues({ queues }: { queues: readonly ReviewQueue[] }): ReactNode {
  const { set: asked } = useSearch({ strict: false })
  const [first, setFirst] = useState(queues[0]?.set_id)
  // Kept when its last answer is decided: the decision can still be taken back.
  if (first === undefined && queues[0]) setFirst(queues[0].set_id)
  const chosen = typeof asked === "string" ? asked : first
  if (chosen === undefined)
    return (
      <div className="panel">
        <Empty icon="check" title={t("Nothing waits for review")}>
          {t(
            "Answers come here when a set abstains, when it is less sure than its threshold, when a shadow answers differently, and some at random. Texts and answers must be kept for it, under Settings.",
          )}
        </Empty>
      </div>
    )
  return (
    <>
      <QueueLinks queues={queues} chosen={chosen} />
      <Queue key={chosen} setId={chosen} />
    </>
  )
}

function QueueLinks({ queues, chosen }: { queues: readonly ReviewQueue[]; chosen: string }): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <nav aria-label={t("Question sets to review")} className="flex flex-wrap gap-2">
      {queues.map(({ set_id, set_name, open }) => (
        <Link
          key={set_id}
          to="/o/$orgId/review"
          params={{ orgId }}
          search={{ set: set_id }}
          aria-current={set_id === chosen ? "page" : undefined}
          className={`flex min-w-0 items-center gap-2 rounded-md border px-2.5 py-1 text-sm ${set_id === chosen ? "border-accent bg-accent-wash text-accent font-medium" : "border-line bg-panel hover:border-strong"}`}
        >
          <span className="truncate">{set_name}</span>
          <span className="number text-xs">
            {open < reviewCountMax ? open : `${reviewCountMax - 1}+`}
            <span className="sr-only"> {t("waiting")}</span>
          </span>
        </Link>
      ))}
    </nav>
  )
}

function Queue({ setId }: { setId: string }): ReactNode {
  const { id: org_id } = useOrganization()
  const query = useQuery(setQuery(org_id, setId))
  return (
    <Loaded query={query} label={t("Loading the question set")}>
      {(set) => (
        <div className="flex flex-col gap-3">
          <p className="text-soft text-sm">
            <T
              text="Answers of {name}"
              name={
                <Link
                  to="/o/$orgId/sets/$setName"
                  params={{ orgId: org_id, setName: set.name }}
                  search={{}}
                  className="text-accent underline"
                >
                  {set.name}
                </Link>
              }
            />
          </p>
          <ReviewTab set={set} at={{ org_id, set_id: set.id }} />
        </div>
      )}
    </Loaded>
  )
}
