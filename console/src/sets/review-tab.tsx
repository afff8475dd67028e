/** Review: doubtful answers one after the other, decided with a key press each; labels become examples of the set. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { type ReactNode, useRef, useState } from "react"
import type { ReviewItem, ReviewSummary } from "../../../src/contract/question-sets/review.ts"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { api } from "../api.ts"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { Empty, Loaded, Panel } from "../parts/page.tsx"
import { ProgressBar } from "../parts/progress-bar.tsx"
import { ContentNeeded } from "./content-needed.tsx"
import { ReviewCard } from "./review-card.tsx"
import type { ReviewAction } from "./review-keys.ts"
import { ReviewStanding } from "./review-standing.tsx"
import { type SetAddress, setsKey } from "./set-query.ts"
import { useReviewKeys } from "./use-review-keys.ts"
import { t, tn } from "../i18n/translate.ts"

const refreshMs = 10_000

export function ReviewTab({ set, at }: { set: QuestionSet; at: SetAddress }): ReactNode {
  const summary = useQuery({
    queryKey: [...reviewKey(at), "summary"],
    refetchInterval: refreshMs,
    queryFn: async () => await api.getReviewSummary({ params: at }),
  })
  return (
    <Loaded query={summary} label={t("Loading the review")}>
      {(standing) =>
        standing.content !== "kept" && standing.open + standing.done === 0 ? (
          <ContentNeeded set={set} isAvailable={standing.content !== "unavailable"} />
        ) : (
          <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-[minmax(0,2fr)_minmax(0,1fr)]">
            <Queue set={set} at={at} summary={standing} />
            <ReviewStanding set={set} at={at} summary={standing} />
          </div>
        )
      }
    </Loaded>
  )
}

const reviewKey = ({ org_id, set_id }: SetAddress): readonly unknown[] => [
  ...setsKey(org_id),
  "review",
  set_id,
]

/** The items that wait, the one in front, and what was decided in this visit. */
function useReview(at: SetAddress) {
  const queries = useQueryClient()
  const items = useQuery({
    queryKey: [...reviewKey(at), "open"],
    refetchInterval: refreshMs,
    queryFn: async () => (await api.listReviewItems({ params: at, query: { state: "open" } })).data,
  })
  const [decided, setDecided] = useState<readonly ReviewItem[]>([])
  const [error, setError] = useState<unknown>(null)
  // What was taken back comes first again, wherever it stands in the list.
  const [returned, setReturned] = useState<ReviewItem | null>(null)
  const open = (items.data ?? []).filter(({ id }) => !decided.some((item) => item.id === id))
  const current = returned ?? open[0]
  // Decisions are sent in their order, and the next item is shown without waiting for them.
  const sending = useRef<Promise<void>>(Promise.resolve())
  const act = (action: ReviewAction): void => {
    const item = action.kind === "undo" ? decided.at(-1) : current
    if (!item) return
    setError(null)
    setReturned(action.kind === "undo" ? item : null)
    setDecided(action.kind === "undo" ? decided.slice(0, -1) : [...decided, item])
    const sent = sending.current
      .then(async () => await send({ ...at, item_id: item.id }, action))
      .catch((failure: unknown) => {
        setError(failure)
        // Its decision is not known to the server: it waits again, or is shown as the server has it.
        setDecided((kept) => kept.filter(({ id }) => id !== item.id))
        setReturned(null)
      })
    sending.current = sent
    void sent.then(async () => {
      // Labels are examples of the set, whose number other tabs show.
      if (sending.current === sent) await queries.invalidateQueries({ queryKey: [...setsKey(at.org_id)] })
    })
  }
  return { items, current, decided, error, act }
}

async function send(params: SetAddress & { readonly item_id: string }, action: ReviewAction): Promise<void> {
  if (action.kind === "undo") await api.undoReviewItem({ params })
  else if (action.kind === "label")
    await api.decideReviewItem({ params, body: { decision: "label", label: action.label } })
  else await api.decideReviewItem({ params, body: { decision: action.kind } })
}

function Queue({
  set,
  at,
  summary,
}: {
  set: QuestionSet
  at: SetAddress
  summary: ReviewSummary
}): ReactNode {
  const { items, current, decided, error, act } = useReview(at)
  useReviewKeys(current, act)
  const total = summary.open + decided.length
  return (
    <Panel
      title={t("Waiting for review")}
      actions={
        <span className="number text-soft text-xs">
          {tn(summary.open, "{count} answer", "{count} answers")}
        </span>
      }
    >
      <div className="flex flex-col gap-4">
        {decided.length > 0 && total > 0 ? (
          <div className="flex flex-col gap-1.5">
            <p className="number text-soft text-xs" role="status">
              {tn(
                decided.length,
                "{count} answer decided in this visit",
                "{count} answers decided in this visit",
              )}
            </p>
            <ProgressBar label={t("Decided in this visit")} value={decided.length} max={total} />
          </div>
        ) : null}
        <ErrorNotice error={error} />
        <Loaded query={items} label={t("Loading answers to review")}>
          {() =>
            current ? (
              <ReviewCard
                key={current.id}
                item={current}
                asked={set.questions.find(({ name }) => name === current.question)}
                canUndo={decided.length > 0}
                onAct={act}
              />
            ) : (
              <NothingWaits set={set} canUndo={decided.length > 0} onAct={act} />
            )
          }
        </Loaded>
      </div>
    </Panel>
  )
}

function NothingWaits({
  set,
  canUndo,
  onAct,
}: {
  set: QuestionSet
  canUndo: boolean
  onAct: (action: ReviewAction) => void
}): ReactNode {
  return (
    <Empty
      icon="check"
      title={t("Nothing waits for review")}
      action={
        canUndo ? (
          <button
            type="button"
            className="text-accent text-sm underline"
            onClick={() => onAct({ kind: "undo" })}
          >
            {t("Undo the last decision")}
          </button>
        ) : undefined
      }
    >
      {t(
        "Answers of “set:{name}” come here when the set abstains, when it is less sure than its threshold, when a shadow answers differently, and some at random.",
        { name: set.name },
      )}
    </Empty>
  )
}
