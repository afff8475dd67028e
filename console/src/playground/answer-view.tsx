/** Answers as one wants to see them: one line in short, and on demand every probability with what confidence means. */
import type { ReactNode } from "react"
import { decimal, percent, probability } from "../parts/format.ts"
import type { Answer, DraftOption } from "./draft.ts"
import { t, tn } from "../i18n/translate.ts"

interface Given {
  readonly answer: Answer | null
  readonly options: readonly DraftOption[]
}

interface Verdict {
  readonly word: string
  readonly aside: string
  /** What the small bar shows. */
  readonly share: number
}

export function verdictOf({ answer, options }: Given): Verdict {
  if (!answer) return { word: "refused", aside: "", share: 0 }
  switch (answer.type) {
    case "predicate": {
      const share = Math.max(answer.probability, 1 - answer.probability)
      return { word: answer.probability >= 0.5 ? t("Yes") : t("No"), aside: probability(share), share }
    }
    case "choice": {
      const share = answer.probabilities[answer.winner] ?? 0
      return { word: options[answer.winner]?.value ?? "?", aside: probability(share), share }
    }
    case "score": {
      const top = answer.probabilities.length - 1
      const mode = modeOf(answer.probabilities)
      return {
        word: options[mode]?.value ?? String(mode),
        aside: t("{score} of {top}", { score: decimal(answer.score, 2), top }),
        share: answer.score / top,
      }
    }
  }
}

/** One line: the answer, its figure and, where there is room, a small bar. */
export function AnswerLine({ bar, ...given }: Given & { bar: boolean }): ReactNode {
  const { word, aside, share } = verdictOf(given)
  return (
    <span className="number flex min-w-0 items-center gap-2">
      <strong dir="auto" className="truncate text-sm font-semibold">
        {word}
      </strong>
      <span className="text-soft ms-auto shrink-0 text-xs">{aside}</span>
      {bar ? (
        <span
          aria-hidden="true"
          className="bg-sunken h-2 w-14 shrink-0 overflow-hidden rounded-full max-sm:hidden"
        >
          <span
            className="bg-bar block h-full rounded-full transition-[width] duration-300"
            style={{ width: `${share * 100}%` }}
          />
        </span>
      ) : null}
    </span>
  )
}

/** The probability of what is answered; null where nothing is. */
export function likelihoodOf(answer: Answer | null): number | null {
  if (!answer) return null
  return answer.type === "predicate"
    ? Math.max(answer.probability, 1 - answer.probability)
    : Math.max(...answer.probabilities)
}

/** Everything the answer says, and what such a probability has been worth. */
export function AnswerDetails({ worth, ...given }: Given & { worth: string | null }): ReactNode {
  return (
    <div className="flex flex-col gap-2">
      <AnswerFigures {...given} />
      {worth ? <p className="text-soft number text-xs">{worth}</p> : null}
    </div>
  )
}

function AnswerFigures({ answer, options }: Given): ReactNode {
  if (!answer) return <p className="text-soft text-sm">{t("The model refused to answer.")}</p>
  switch (answer.type) {
    case "predicate":
      return (
        <div className="flex flex-col gap-2">
          <Bar name={t("yes")} share={answer.probability} winner={answer.probability >= 0.5} />
          <Bar name={t("no")} share={1 - answer.probability} winner={answer.probability < 0.5} />
        </div>
      )
    case "choice":
      return (
        <div className="flex flex-col gap-2">
          {answer.probabilities.map((share, index) => (
            <Bar
              key={options[index]?.id ?? index}
              name={options[index]?.value ?? String(index)}
              share={share}
              winner={index === answer.winner}
            />
          ))}
          <Confidence value={answer.confidence}>
            {tn(
              answer.probabilities.length,
              "how far the winner is above an even split of {count} option ({probabilities} each). 0% is an even split, 100% is one option alone.",
              "how far the winner is above an even split of {count} options ({probabilities} each). 0% is an even split, 100% is one option alone.",
              { probabilities: percent(1 / answer.probabilities.length) },
            )}
          </Confidence>
        </div>
      )
    case "score":
      return <ScoreDetails answer={answer} options={options} />
  }
}

function ScoreDetails({
  answer,
  options,
}: {
  answer: Extract<Answer, { type: "score" }>
  options: readonly DraftOption[]
}): ReactNode {
  const top = answer.probabilities.length - 1
  const mode = modeOf(answer.probabilities)
  return (
    <div className="flex flex-col gap-2">
      <Scale score={answer.score} top={top} />
      {answer.probabilities.map((share, index) => (
        <Bar
          key={options[index]?.id ?? index}
          name={`${index} ${options[index]?.value ?? ""}`}
          share={share}
          winner={index === mode}
        />
      ))}
      <Confidence value={answer.confidence}>
        {t(
          "how closely the levels gather around the likeliest one. 0% is as wide as an even spread, 100% is one level alone. The score is the mean of the levels.",
        )}
      </Confidence>
    </div>
  )
}

const modeOf = (probabilities: readonly number[]): number => probabilities.indexOf(Math.max(...probabilities))

function Confidence({ value, children }: { value: number; children: ReactNode }): ReactNode {
  return (
    <p className="text-soft number text-xs">
      <span className="text-ink font-medium">{t("Confidence {value}", { value: percent(value) })}</span>:{" "}
      {children}
    </p>
  )
}

function Bar({ name, share, winner }: { name: string; share: number; winner: boolean }): ReactNode {
  return (
    <div className="grid grid-cols-[minmax(4rem,28%)_1fr_3.5rem] items-center gap-2 text-xs">
      <span dir="auto" className={`truncate ${winner ? "font-medium" : "text-soft"}`} title={name}>
        {name}
      </span>
      <span
        role="meter"
        aria-label={t("Probability of {name}", { name })}
        aria-valuemin={0}
        aria-valuemax={1}
        aria-valuenow={share}
        aria-valuetext={probability(share)}
        className="bg-sunken h-2.5 overflow-hidden rounded-full"
      >
        <span
          className={`block h-full rounded-full transition-[width] duration-300 ${winner ? "bg-bar" : "bg-bar-rest"}`}
          style={{ width: `${share * 100}%` }}
        />
      </span>
      <span className="number text-end" aria-hidden="true">
        {probability(share)}
      </span>
    </div>
  )
}

/** The score's place between the first and the last level. */
function Scale({ score, top }: { score: number; top: number }): ReactNode {
  return (
    <div aria-hidden="true" className="relative mx-1.5 my-1 h-4">
      <div className="bg-line absolute inset-x-0 top-1/2 h-px" />
      {Array.from({ length: top + 1 }, (_, index) => (
        <div
          key={index}
          className="bg-strong absolute top-1/2 h-2 w-px -translate-y-1/2"
          style={{ left: `${(index / top) * 100}%` }}
        />
      ))}
      <div
        className="bg-accent border-panel absolute top-1/2 size-3.5 -translate-x-1/2 -translate-y-1/2 rounded-full border-2 transition-[left] duration-300"
        style={{ left: `${(score / top) * 100}%` }}
      />
    </div>
  )
}
