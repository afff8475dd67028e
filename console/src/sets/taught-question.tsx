/** What teaching found for one question: before and after with intervals, baselines, and what cannot be promised. */
import { queryOptions, useQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import type { EvidenceRule, SetQuestion } from "../../../src/contract/question-sets/content.ts"
import type { Artefact, TeachResult } from "../../../src/contract/question-sets/jobs.ts"
import { api } from "../api.ts"
import { decimal, percent } from "../parts/format.ts"
import { measureWords } from "../parts/measure-words.ts"
import { Badge, Loaded, Notice, Panel } from "../parts/page.tsx"
import { type SetAddress, setsKey } from "./set-query.ts"
import { t, tn } from "../i18n/translate.ts"

type Outcome = TeachResult["questions"][number]

export const artefactQuery = (at: SetAddress, hash: string) =>
  queryOptions({
    queryKey: [...setsKey(at.org_id), "artefact", at.set_id, hash],
    // An artefact never changes.
    staleTime: Infinity,
    queryFn: async () => await api.getQuestionSetArtefact({ params: { ...at, hash } }),
  })

/** What was fitted, for those who know the terms. */
const formTerms: Record<Artefact["form"], string> = {
  zero_shot: "Zero-shot",
  temperature: t("A temperature"),
  option_bias: t("A temperature and a bias for each option"),
  head: t("A linear head on the text’s vector and the model’s margins"),
  words: t("A linear head on words, characters and fields, and the model’s margins"),
  head_and_words: t("A linear head on the text’s vector, words and fields, and the model’s margins"),
}

const formNames: Record<Artefact["form"], string> = {
  zero_shot: t("Unchanged: the model’s own answers were the best"),
  temperature: t("Corrects how sure the answers are"),
  option_bias: t("Corrects how likely each option is"),
  head: t("Learned which texts belong to which answer"),
  words: t("Learned which words and fields belong to which answer"),
  head_and_words: t("Learned which texts, words and fields belong to which answer"),
}

export function TaughtQuestion({
  at,
  asked,
  outcome,
}: {
  at: SetAddress
  asked: SetQuestion
  /** Of the last teaching; null where there was none. */
  outcome: Outcome | null
}): ReactNode {
  return (
    <Panel
      title={asked.name}
      actions={asked.artefact ? <Badge tone="good">{t("Taught")}</Badge> : <Badge>{t("Not taught")}</Badge>}
    >
      <div className="flex flex-col gap-4">
        <p className="text-soft text-sm wrap-anywhere" dir="auto">
          {asked.instructions}
        </p>
        {outcome?.reason ? (
          <Notice tone="warn">{t("Not taught: {reason}", { reason: outcome.reason })}</Notice>
        ) : null}
        {asked.artefact ? <Found at={at} hash={asked.artefact} rules={asked.rules ?? []} /> : null}
        {outcome?.promise ? (
          <Notice tone={outcome.promise.promised ? "good" : "warn"}>{outcome.promise.sentence}</Notice>
        ) : null}
        {outcome?.teacher ? <p className="number text-soft text-sm">{outcome.teacher.sentence}.</p> : null}
        {outcome?.labels_needed ? (
          <p className="number text-soft text-sm">{outcome.labels_needed.sentence}.</p>
        ) : null}
      </div>
    </Panel>
  )
}

function Found({
  at,
  hash,
  rules,
}: {
  at: SetAddress
  hash: string
  rules: readonly EvidenceRule[]
}): ReactNode {
  const query = useQuery(artefactQuery(at, hash))
  return (
    <Loaded query={query} label={t("Loading the figures")}>
      {(artefact) => (
        <>
          <Figures artefact={artefact} />
          {rules.length > 0 ? <Rules rules={rules} weighed={artefact.rules} /> : null}
        </>
      )}
    </Loaded>
  )
}

function Rules({
  rules,
  weighed,
}: {
  rules: readonly EvidenceRule[]
  weighed: Artefact["rules"]
}): ReactNode {
  return (
    <ul aria-label={t("Rules")} className="number flex flex-col gap-1 text-xs">
      {rules.map(({ when, weight }, at) => {
        const found = weighed[at]
        return (
          <li key={when} className="flex flex-wrap justify-between gap-x-3">
            <code className="font-mono wrap-anywhere">{when}</code>
            <span className="text-soft whitespace-nowrap">
              {found
                ? tn(
                    found.met,
                    "weight {before} became {after}; right in {right} of {count} row",
                    "weight {before} became {after}; right in {right} of {count} rows",
                    { before: decimal(weight, 1), after: decimal(found.weight, 1), right: found.right },
                  )
                : t("weight {weight}", { weight: decimal(weight, 1) })}
            </span>
          </li>
        )
      })}
    </ul>
  )
}

function Figures({ artefact }: { artefact: Artefact }): ReactNode {
  const { rows, held_out, cross_validated, baselines, form, notes, learning } = artefact
  const { before, after } = held_out ?? cross_validated
  return (
    <>
      <p className="text-sm">
        <span className="font-medium" title={formTerms[form]}>
          {formNames[form]}
        </span>
        <span className="text-soft">
          {" "}
          · {fittedWords(rows)},{" "}
          {held_out
            ? tn(rows.held_out, "measured on {count} held-out row", "measured on {count} held-out rows")
            : t("measured on the same rows, each judged without having seen it")}
        </span>
      </p>
      <div className="grid gap-x-8 gap-y-4 lg:grid-cols-3">
        <BeforeAfter
          name={t("Accuracy")}
          about={measureWords.accuracy}
          better="higher"
          before={before.accuracy}
          after={after.accuracy}
          show={percent}
        />
        <BeforeAfter
          name={t("Calibration error (ECE)")}
          about={measureWords.calibrationError}
          better="lower"
          before={before.calibration_error}
          after={after.calibration_error}
          show={percent}
        />
        <BeforeAfter
          name={t("Brier score")}
          about={measureWords.brier}
          better="lower"
          before={before.brier}
          after={after.brier}
          show={(value) => decimal(value, 3)}
        />
      </div>
      {learning.length > 1 ? (
        <div className="grid gap-x-8 lg:grid-cols-3">
          <IntervalBars
            name={t("Accuracy by the number of labels")}
            top={1}
            show={percent}
            bars={learning.map((point) => ({
              name: String(point.rows),
              figure: point.accuracy,
              color: point.rows === learning.at(-1)?.rows ? "bg-bar" : "bg-bar-rest",
            }))}
          />
        </div>
      ) : null}
      <p className="number text-soft text-xs">
        {baselines.empty_evidence === null
          ? t(
              "Accuracy without learning: {majority} by always giving the most frequent label, {random} by chance.",
              { majority: percent(baselines.majority), random: percent(baselines.random) },
            )
          : t(
              "Accuracy without learning: {majority} by always giving the most frequent label, {random} by chance, {withoutText} by the model without the text.",
              {
                majority: percent(baselines.majority),
                random: percent(baselines.random),
                withoutText: percent(baselines.empty_evidence),
              },
            )}{" "}
        {t("The lines on the bars are 95% confidence intervals.")}
      </p>
      {baselines.answered_without_evidence ? (
        <Notice tone="warn">
          {t(
            "These answers are not surely better than answers given without reading the text. Check the labels, or add more rows.",
          )}
        </Notice>
      ) : null}
      {notes.map((note) => (
        <Notice key={note} tone="plain">
          {note}
        </Notice>
      ))}
    </>
  )
}

interface Interval {
  readonly value: number
  readonly low: number
  readonly high: number
}

function BeforeAfter({
  name,
  about,
  better,
  before,
  after,
  show,
}: {
  name: string
  about: string
  better: "higher" | "lower"
  before: Interval
  after: Interval
  show: (value: number) => string
}): ReactNode {
  // Accuracy is a share of a whole; errors are compared with the greater of the two.
  const top = better === "higher" ? 1 : Math.max(before.high, after.high, 0.01)
  return (
    <IntervalBars
      name={
        <>
          {name}{" "}
          <span className="font-normal">
            ({better === "higher" ? t("higher is better") : t("lower is better")})
          </span>
        </>
      }
      about={about}
      top={top}
      show={show}
      bars={[
        { name: t("Before"), figure: before, color: "bg-bar-rest" },
        { name: t("After"), figure: after, color: "bg-bar" },
      ]}
    />
  )
}

interface IntervalBar {
  readonly name: string
  readonly figure: Interval
  readonly color: string
}

function IntervalBars({
  name: title,
  about,
  top,
  show,
  bars,
}: {
  name: ReactNode
  about?: string
  /** What the whole width stands for. */
  top: number
  show: (value: number) => string
  bars: readonly IntervalBar[]
}): ReactNode {
  return (
    <figure className="flex flex-col gap-1.5">
      <figcaption className="label">{title}</figcaption>
      {about ? <p className="text-soft text-xs">{about}</p> : null}
      {bars.map(({ name, figure, color }) => (
        <div
          key={name}
          className="number grid grid-cols-[3rem_minmax(3rem,1fr)_10.5rem] items-center gap-2 text-xs"
        >
          <span className="text-soft">{name}</span>
          <span aria-hidden="true" className="bg-sunken relative h-4 overflow-hidden rounded">
            <span
              className={`absolute inset-y-0 start-0 ${color}`}
              style={{ width: `${share(figure.value, top)}%` }}
            />
            <span
              className="bg-ink/60 absolute top-1/2 h-0.5 -translate-y-1/2"
              style={{
                insetInlineStart: `${share(figure.low, top)}%`,
                width: `${share(figure.high, top) - share(figure.low, top)}%`,
              }}
            />
          </span>
          <span className="text-end">
            <span className="font-medium">{show(figure.value)}</span>{" "}
            <span className="text-soft">{rangeOf(show(figure.low), show(figure.high))}</span>
          </span>
        </div>
      ))}
    </figure>
  )
}

/** Bounds that read the same say nothing more than the value. */
const rangeOf = (low: string, high: string): string =>
  low === high ? "" : t("{low} to {high}", { low, high })

const share = (value: number, top: number): number => Math.min(Math.max(value / top, 0), 1) * 100

function fittedWords({ train, teacher }: Artefact["rows"]): string {
  const own = tn(train, "fitted to {count} row", "fitted to {count} rows")
  return teacher > 0
    ? tn(teacher, "{own} and {count} answer of another model", "{own} and {count} answers of another model", {
        own,
      })
    : own
}
