/** One answer to review: why it is here, the text, the question, what the set answered, and the labels with their keys. */
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { SetQuestion } from "../../../src/contract/question-sets/content.ts"
import type { ReviewItem, ReviewReason } from "../../../src/contract/question-sets/review.ts"
import { Button } from "../parts/button.tsx"
import { ago, percent, probability } from "../parts/format.ts"
import { Badge } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { labelName } from "./labels.ts"
import { type ReviewAction, keyOfOption } from "./review-keys.ts"

export function ReviewCard({
  item,
  asked,
  canUndo,
  onAct,
}: {
  item: ReviewItem
  asked: SetQuestion | undefined
  canUndo: boolean
  onAct: (action: ReviewAction) => void
}): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <article aria-label={`Review of ${item.question}`} className="flex flex-col gap-4">
      <div className="flex flex-wrap items-center gap-2 text-xs">
        <Badge tone={item.reason === "audit" ? "plain" : item.reason === "label_next" ? "info" : "warn"}>
          {reasonWords(item)}
        </Badge>
        {item.second_look ? <Badge tone="info">Two reviewers</Badge> : null}
        <span className="text-soft max-sm:basis-full sm:ml-auto">
          Version {item.version}, {ago(item.created_at)}.{" "}
          <Link
            to="/o/$orgId/requests/$seqId"
            params={{ orgId, seqId: item.seq_id }}
            className="text-accent underline"
          >
            Request
          </Link>
        </span>
      </div>
      <div>
        <p className="label mb-1">Text</p>
        <div
          role="region"
          aria-label="Text"
          tabIndex={0}
          className="bg-sunken max-h-72 overflow-auto rounded-lg p-3 text-sm leading-relaxed whitespace-pre-wrap wrap-anywhere"
        >
          {item.evidence}
        </div>
      </div>
      <div>
        <p className="label mb-1">{item.question}</p>
        <p className="text-base font-medium wrap-anywhere">{item.instructions}</p>
        <p className="number text-soft mt-1 text-sm">
          {item.answer === null ? (
            "The set abstained"
          ) : (
            <>
              The set answered <strong className="text-ink font-medium">{answerWords(item, asked)}</strong>
            </>
          )}
          , {probability(item.confidence)} sure
          {item.threshold === null ? "" : `; the threshold is ${percent(item.threshold)}`}.
        </p>
      </div>
      <Labels item={item} asked={asked} onAct={onAct} />
      <div className="border-line flex flex-wrap gap-2 border-t pt-3">
        <KeyButton letter="?" onClick={() => onAct({ kind: "not_sure" })}>
          Not sure
        </KeyButton>
        <KeyButton letter="s" onClick={() => onAct({ kind: "skip" })}>
          Skip
        </KeyButton>
        <KeyButton letter="u" disabled={!canUndo} onClick={() => onAct({ kind: "undo" })}>
          Undo
        </KeyButton>
      </div>
    </article>
  )
}

function reasonWords({ reason, confidence, threshold }: ReviewItem): string {
  const words: Record<ReviewReason, string> = {
    abstained: "The set abstained",
    low_confidence:
      threshold === null
        ? `Only ${probability(confidence)} sure`
        : `${probability(confidence)} sure, below the threshold`,
    shadow_differs: "The shadow answers differently",
    audit: "Chosen at random",
    label_next: "Proposed to label next",
  }
  return words[reason]
}

/** What the set answered, by the name that people know. */
function answerWords({ answer, options, kind }: ReviewItem, asked: SetQuestion | undefined): string {
  if (answer === null) return ""
  if (asked) return labelName(asked, answer)
  const level = kind === "score" ? options.find(({ value }) => value === answer) : undefined
  return level?.description ?? String(answer)
}

function Labels({
  item,
  asked,
  onAct,
}: {
  item: ReviewItem
  asked: SetQuestion | undefined
  onAct: (action: ReviewAction) => void
}): ReactNode {
  return (
    <fieldset>
      <legend className="label mb-1.5">The right answer</legend>
      <div className="flex flex-wrap gap-2">
        {item.options.map(({ value, description }, index) => (
          <KeyButton
            key={String(value)}
            letter={keyOfOption(item, index)}
            strong
            title={description}
            onClick={() => onAct({ kind: "label", label: value })}
          >
            {asked ? labelName(asked, value) : item.kind === "score" ? description : String(value)}
          </KeyButton>
        ))}
      </div>
    </fieldset>
  )
}

export function KeyButton({
  letter,
  strong = false,
  disabled = false,
  title,
  onClick,
  children,
}: {
  /** The key that does the same; empty: none. */
  letter: string
  strong?: boolean
  disabled?: boolean
  title?: string
  onClick: () => void
  children: ReactNode
}): ReactNode {
  return (
    <Button
      small={!strong}
      disabled={disabled}
      title={title || undefined}
      aria-keyshortcuts={letter || undefined}
      onClick={onClick}
    >
      {letter ? (
        <kbd
          aria-hidden="true"
          className="border-strong bg-sunken text-soft grid size-5 place-items-center rounded border font-mono pointer-coarse:hidden text-[11px]"
        >
          {letter}
        </kbd>
      ) : null}
      {children}
    </Button>
  )
}
