/** Answers as one wants to see them: probabilities as bars, a score on its scale. */
import type { ReactNode } from "react"
import { percent } from "../parts/format.ts"
import type { Answer, DraftOption } from "./draft.ts"

export function AnswerView({
  answer,
  options,
}: {
  answer: Answer | null
  options: readonly DraftOption[]
}): ReactNode {
  if (!answer) return <p className="text-soft text-sm">The model refused to answer.</p>
  switch (answer.type) {
    case "predicate":
      return <PredicateAnswer probability={answer.probability} />
    case "choice":
      return <ChoiceAnswer answer={answer} options={options} />
    case "score":
      return <ScoreAnswer answer={answer} options={options} />
  }
}

function PredicateAnswer({ probability }: { probability: number }): ReactNode {
  const yes = probability >= 0.5
  return (
    <div className="flex flex-col gap-2">
      <Verdict word={yes ? "Yes" : "No"} aside={`${percent(yes ? probability : 1 - probability)} likely`} />
      <Bar name="yes" share={probability} winner={yes} />
      <Bar name="no" share={1 - probability} winner={!yes} />
    </div>
  )
}

function ChoiceAnswer({
  answer,
  options,
}: {
  answer: Extract<Answer, { type: "choice" }>
  options: readonly DraftOption[]
}): ReactNode {
  return (
    <div className="flex flex-col gap-2">
      <Verdict
        word={options[answer.winner]?.value ?? "?"}
        aside={`confidence ${percent(answer.confidence)}`}
      />
      {answer.probabilities.map((share, index) => (
        <Bar
          key={options[index]?.id ?? index}
          name={options[index]?.value ?? String(index)}
          share={share}
          winner={index === answer.winner}
        />
      ))}
    </div>
  )
}

function ScoreAnswer({
  answer,
  options,
}: {
  answer: Extract<Answer, { type: "score" }>
  options: readonly DraftOption[]
}): ReactNode {
  const top = answer.probabilities.length - 1
  const mode = answer.probabilities.indexOf(Math.max(...answer.probabilities))
  return (
    <div className="flex flex-col gap-2">
      <Verdict
        word={`${answer.score.toFixed(2)} of ${top}`}
        aside={`most likely ${options[mode]?.value ?? mode} · confidence ${percent(answer.confidence)}`}
      />
      <Scale score={answer.score} top={top} />
      {answer.probabilities.map((share, index) => (
        <Bar
          key={options[index]?.id ?? index}
          name={`${index} ${options[index]?.value ?? ""}`}
          share={share}
          winner={index === mode}
        />
      ))}
    </div>
  )
}

function Verdict({ word, aside }: { word: string; aside: string }): ReactNode {
  return (
    <p className="flex flex-wrap items-baseline gap-x-2">
      <strong className="number text-base font-semibold wrap-anywhere">{word}</strong>
      <span className="text-soft number text-xs">{aside}</span>
    </p>
  )
}

function Bar({ name, share, winner }: { name: string; share: number; winner: boolean }): ReactNode {
  return (
    <div className="grid grid-cols-[minmax(4rem,28%)_1fr_3.25rem] items-center gap-2 text-xs">
      <span className={`truncate ${winner ? "font-medium" : "text-soft"}`} title={name}>
        {name}
      </span>
      <span
        role="meter"
        aria-label={`Probability of ${name}`}
        aria-valuemin={0}
        aria-valuemax={1}
        aria-valuenow={share}
        aria-valuetext={percent(share)}
        className="bg-sunken h-2.5 overflow-hidden rounded-full"
      >
        <span
          className={`block h-full rounded-full transition-[width] duration-300 ${winner ? "bg-bar" : "bg-bar-rest"}`}
          style={{ width: `${share * 100}%` }}
        />
      </span>
      <span className="number text-right" aria-hidden="true">
        {percent(share)}
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
