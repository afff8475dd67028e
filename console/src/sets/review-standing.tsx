/** How the review stands: what was labelled, how far reviewers agree, and whether teaching again would pay. */
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { ReviewSummary } from "../../../src/contract/question-sets/review.ts"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { Figure } from "../parts/figure.tsx"
import { Form } from "../parts/form.tsx"
import { count, decimal } from "../parts/format.ts"
import { NumberField } from "../parts/number-field.tsx"
import { measureWords } from "../parts/measure-words.ts"
import { Notice, Panel } from "../parts/page.tsx"
import { numberOf, numberText } from "../parts/typed-number.ts"
import { useMay, useOrganization } from "../session.ts"
import { LabelNext } from "./label-next.tsx"
import { type SetAddress, jobsKey, setsKey } from "./set-query.ts"
import { T } from "../i18n/sentence.tsx"
import { t, tn } from "../i18n/translate.ts"

export function ReviewStanding({
  set,
  at,
  summary,
}: {
  set: QuestionSet
  at: SetAddress
  summary: ReviewSummary
}): ReactNode {
  // Reviewers label, and change nothing else.
  const mayTeach = useMay("api-write")
  return (
    <div className="flex flex-col gap-4">
      <Panel title={t("Labels")}>
        <div className="flex flex-col gap-4">
          <dl className="number grid grid-cols-3 gap-3">
            <Figure name={t("Reviewed")} value={count(summary.done)} />
            <Figure name={t("New labels")} value={count(summary.labelled_since_taught)} />
            <Figure name={t("Corrections")} value={count(summary.corrected_since_taught)} />
          </dl>
          {mayTeach ? <Advice set={set} at={at} summary={summary} /> : null}
        </div>
      </Panel>
      {mayTeach && summary.content === "kept" ? <LabelNext set={set} at={at} /> : null}
      <Agreement agreement={summary.agreement} />
      {mayTeach ? <Sampling at={at} summary={summary} /> : null}
      {summary.content === "kept" ? null : (
        <Notice tone="warn">
          {t("Texts and answers are no longer kept: nothing new comes into this queue.")}
        </Notice>
      )}
    </div>
  )
}

function Advice({
  set,
  at,
  summary,
}: {
  set: QuestionSet
  at: SetAddress
  summary: ReviewSummary
}): ReactNode {
  const { id: orgId } = useOrganization()
  const navigate = useNavigate()
  const teach = useWrite(
    async () => await api.teachQuestionSet({ params: at, body: {} }),
    [jobsKey(at)],
    () =>
      void navigate({
        to: "/o/$orgId/sets/$setName",
        params: { orgId, setName: set.name },
        search: { tab: "teach" },
      }),
  )
  if (!summary.teaching_would_pay) return <p className="text-soft text-sm">{summary.teaching_reason}</p>
  return (
    <div className="flex flex-col gap-3">
      <Notice
        tone="good"
        action={
          <Button small icon="play" busy={teach.isPending} onClick={() => teach.mutate(undefined)}>
            {t("Teach again")}
          </Button>
        }
      >
        {t("Teaching again would pay.")} {summary.teaching_reason}
      </Notice>
      <ErrorNotice error={teach.error} />
    </div>
  )
}

/** After Landis and Koch. */
const agreementWords = [
  [0.8, t("almost perfect")],
  [0.6, "substantial"],
  [0.4, "moderate"],
  [0.2, "fair"],
  [Number.NEGATIVE_INFINITY, "slight"],
] as const

function Agreement({ agreement: { pairs, kappa, questions } }: Pick<ReviewSummary, "agreement">): ReactNode {
  const words = kappa === null ? null : agreementWords.find(([least]) => kappa > least)?.[1]
  return (
    <Panel title={t("Agreement of reviewers")}>
      {pairs === 0 ? (
        <p className="text-soft text-sm">
          {t(
            "One answer in ten is shown to two reviewers. When both have labelled it, this says how far they agree.",
          )}
        </p>
      ) : (
        <div className="flex flex-col gap-3">
          <p className="number text-sm">
            {kappa === null ? (
              tn(
                pairs,
                "Too few labels to measure it, from {count} answer that two people labelled.",
                "Too few labels to measure it, from {count} answers that two people labelled.",
              )
            ) : (
              <T
                text="Cohen’s kappa {kappa}, {words}, from {count} answers that two people labelled."
                one="Cohen’s kappa {kappa}, {words}, from {count} answer that two people labelled."
                count={pairs}
                kappa={<strong className="font-medium">{decimal(kappa, 2)}</strong>}
                words={words}
              />
            )}
          </p>
          <p className="text-soft text-xs">{measureWords.kappa}</p>
          {questions.length > 1 ? (
            <ul className="number flex flex-col gap-1 text-xs">
              {questions.map((one) => (
                <li key={one.question} className="flex justify-between gap-3">
                  <span className="truncate">{one.question}</span>
                  <span className="text-soft whitespace-nowrap">
                    {one.kappa === null ? t("too few") : decimal(one.kappa, 2)},{" "}
                    {tn(one.pairs, "{count} pair", "{count} pairs")}
                  </span>
                </li>
              ))}
            </ul>
          ) : null}
        </div>
      )}
    </Panel>
  )
}

const sampleBounds = { min: 0, max: 1, required: true }

function Sampling({ at, summary }: { at: SetAddress; summary: ReviewSummary }): ReactNode {
  const [share, setShare] = useState(numberText(summary.sample_rate, "percentage"))
  const write = useWrite(
    async () =>
      await api.updateReviewSettings({
        params: at,
        body: { sample_rate: numberOf(share, "percentage", sampleBounds) ?? 0 },
      }),
    [setsKey(at.org_id)],
  )
  return (
    <Panel title={t("Random sample")}>
      <Form
        label={t("Random sample")}
        write={write}
        footer={
          <Button type="submit" small className="self-start" busy={write.isPending}>
            {t("Save")}
          </Button>
        }
      >
        <NumberField
          kind="percentage"
          bounds={sampleBounds}
          label={t("Share of all answers, %")}
          value={share}
          hint={t("Reviewed whether doubtful or not, so that the labels say how good the set is.")}
          onText={setShare}
        />
      </Form>
    </Panel>
  )
}
