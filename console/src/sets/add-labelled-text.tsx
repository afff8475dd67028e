/** One text with its right answers, typed by hand: an example to learn from, or a case to freeze. */
import { type ReactNode, useId, useState } from "react"
import type { AddedRows } from "../../../src/contract/question-sets/examples.ts"
import { type SetVerdict, type QuestionSet, trialHeader } from "../../../src/contract/question-sets/sets.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { FormDialog } from "../parts/dialog.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { AreaField } from "../parts/field.tsx"
import { probability } from "../parts/format.ts"
import { type LabelValue, labelName, labelOfVerdict } from "./labels.ts"
import { LabelSelect } from "./label-select.tsx"
import { type SetAddress, setsKey } from "./set-query.ts"
import { t } from "../i18n/translate.ts"

type Labels = Readonly<Record<string, LabelValue>>

const words = {
  example: {
    title: t("Add an example"),
    submit: t("Add example"),
    about: t("The set learns from it when it is taught."),
    labels: t("Right answers"),
  },
  case: {
    title: t("Freeze a case"),
    submit: t("Freeze case"),
    about: t("Every version must give these answers; a check says which do not."),
    labels: t("Expected answers"),
  },
} as const

export function AddLabelledText({
  kind,
  set,
  at,
  onClose,
}: {
  kind: keyof typeof words
  set: QuestionSet
  at: SetAddress
  onClose: () => void
}): ReactNode {
  const { title, submit, about, labels: heading } = words[kind]
  const [input, setInput] = useState("")
  const [labels, setLabels] = useState<Labels>({})
  const ask = useWrite(
    async () =>
      await api.decideQuestionSet({
        params: at,
        headers: { [trialHeader]: "true" },
        body: { input, version: "latest" },
      }),
    [],
    ({ answers }) => setLabels({ ...suggested(set, answers), ...labels }),
  )
  const write = useWrite(
    async () => await (kind === "example" ? addExample : addCase)(at, input, labels),
    [setsKey(at.org_id)],
    onClose,
  )
  const blank = input.trim() === ""
  return (
    <FormDialog
      title={title}
      submit={submit}
      wide
      write={write}
      onClose={onClose}
      ready={!blank && Object.keys(labels).length > 0}
    >
      <p className="text-soft text-sm">{about}</p>
      <AreaField
        label={t("Text")}
        rows={5}
        required
        dir="auto"
        value={input}
        onChange={(event) => {
          setInput(event.target.value)
          ask.reset()
        }}
      />
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <Button icon="play" disabled={blank} busy={ask.isPending} onClick={() => ask.mutate(undefined)}>
          {t("Ask the set")}
        </Button>
        <p className="text-soft flex-1 basis-56 text-xs">
          {t("Fills in its own answers, for you to check. Charged as a request.")}
        </p>
      </div>
      <ErrorNotice error={ask.error} />
      <fieldset className="flex flex-col gap-2">
        <legend className="label mb-1">{heading}</legend>
        {set.questions.map((asked) => (
          <Row
            key={asked.name}
            asked={asked}
            answered={ask.data?.answers.find(({ name }) => name === asked.name)}
            value={labels[asked.name] ?? null}
            onChange={(value) => setLabels(withLabel(labels, asked.name, value))}
          />
        ))}
      </fieldset>
    </FormDialog>
  )
}

function Row({
  asked,
  answered,
  value,
  onChange,
}: {
  asked: QuestionSet["questions"][number]
  answered: SetVerdict | undefined
  value: LabelValue | null
  onChange: (value: LabelValue | null) => void
}): ReactNode {
  const id = useId()
  return (
    <div className="grid items-center gap-x-4 gap-y-1 sm:grid-cols-[minmax(0,1fr)_14rem]">
      <div className="min-w-0">
        <p className="text-sm font-medium wrap-anywhere">{asked.name}</p>
        <p id={id} className="text-soft line-clamp-2 text-xs wrap-anywhere" dir="auto">
          {asked.instructions}
        </p>
      </div>
      <div>
        <LabelSelect
          tall
          label={t("Answer to {name}", { name: asked.name })}
          asked={asked}
          value={value}
          onChange={onChange}
        />
        {answered ? (
          <p className="number text-soft mt-1 text-xs">
            {answered.abstained
              ? t("The set abstains, {confidence} sure", { confidence: probability(answered.confidence) })
              : t("The set says {answer}, {confidence} sure", {
                  answer: labelName(asked, answered.verdict),
                  confidence: probability(answered.confidence),
                })}
          </p>
        ) : null}
      </div>
    </div>
  )
}

function suggested(set: QuestionSet, answers: readonly SetVerdict[]): Labels {
  return Object.fromEntries(
    set.questions.flatMap((asked) => {
      const answered = answers.find(({ name }) => name === asked.name)
      const label = answered && labelOfVerdict(asked, answered.verdict, answered.abstained)
      return label === undefined || label === null ? [] : [[asked.name, label]]
    }),
  )
}

function withLabel(labels: Labels, name: string, value: LabelValue | null): Labels {
  const { [name]: _, ...others } = labels
  return value === null ? others : { ...others, [name]: value }
}

async function addExample(at: SetAddress, input: string, labels: Labels): Promise<void> {
  const result = await api.addQuestionSetExamples({ params: at, body: { rows: [{ input, labels }] } })
  const problem = problemOf(result)
  if (problem) throw new Error(problem)
}

function problemOf({ contradictions, refused, duplicates }: AddedRows): string | null {
  if (refused[0]) return t("It cannot be used: {reason}", { reason: refused[0].reason })
  const other = contradictions[0]
  if (other)
    return t(
      "This text is an example already, with another answer to {question}. Change its label in the table.",
      { question: other.question },
    )
  return duplicates > 0 ? t("This text is an example already, with these labels.") : null
}

async function addCase(at: SetAddress, input: string, expected: Labels): Promise<void> {
  await api.addQuestionSetCases({ params: at, body: { cases: [{ input, expected }] } })
}
