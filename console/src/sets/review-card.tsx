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
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

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
    <article
      aria-label={t("Review of {question}", { question: item.question })}
      className="flex flex-col gap-4"
    >
      <div className="flex flex-wrap items-center gap-2 text-xs">
        <Badge tone={item.reason === "audit" ? "plain" : item.reason === "label_next" ? "info" : "warn"}>
          {reasonWords(item)}
        </Badge>
        {item.second_look ? <Badge tone="info">{t("Two reviewers")}</Badge> : null}
        <span className="text-soft max-sm:basis-full sm:ms-auto">
          <T
            text="Version {version}, {createdAt}. <a>Request</a>"
            version={item.version}
            createdAt={ago(item.created_at)}
            a={(children) => (
              <Link
                to="/o/$orgId/requests/$seqId"
                params={{ orgId, seqId: item.seq_id }}
                className="text-accent underline"
              >
                {children}
              </Link>
            )}
          />
        </span>
      </div>
      <div>
        <p className="label mb-1">{t("Text")}</p>
        <div
          role="region"
          aria-label={t("Text")}
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
          <Said item={item} asked={asked} />
        </p>
      </div>
      <Labels item={item} asked={asked} onAct={onAct} />
      <div className="border-line flex flex-wrap gap-2 border-t pt-3">
        <KeyButton letter="?" onClick={() => onAct({ kind: "not_sure" })}>
          {t("Not sure")}
        </KeyButton>
        <KeyButton letter="s" onClick={() => onAct({ kind: "skip" })}>
          {t("Skip")}
        </KeyButton>
        <KeyButton letter="u" disabled={!canUndo} onClick={() => onAct({ kind: "undo" })}>
          {t("Undo")}
        </KeyButton>
      </div>
    </article>
  )
}

function reasonWords({ reason, confidence, threshold }: ReviewItem): string {
  const words: Record<ReviewReason, string> = {
    abstained: t("The set abstained"),
    low_confidence:
      threshold === null
        ? t("Only {confidence} sure", { confidence: probability(confidence) })
        : t("{confidence} sure, below the threshold", { confidence: probability(confidence) }),
    shadow_differs: t("The shadow answers differently"),
    audit: t("Chosen at random"),
    label_next: t("Proposed to label next"),
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
      <legend className="label mb-1.5">{t("The right answer")}</legend>
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

/** What the set answered, and how sure it was. */
function Said({ item, asked }: { item: ReviewItem; asked: SetQuestion | undefined }): ReactNode {
  const confidence = probability(item.confidence)
  const threshold = item.threshold === null ? null : percent(item.threshold)
  if (item.answer === null)
    return threshold === null
      ? t("The set abstained, {confidence} sure.", { confidence })
      : t("The set abstained, {confidence} sure; the threshold is {threshold}.", { confidence, threshold })
  const answer = <strong className="text-ink font-medium">{answerWords(item, asked)}</strong>
  return threshold === null ? (
    <T text="The set answered {answer}, {confidence} sure." answer={answer} confidence={confidence} />
  ) : (
    <T
      text="The set answered {answer}, {confidence} sure; the threshold is {threshold}."
      answer={answer}
      confidence={confidence}
      threshold={threshold}
    />
  )
}
