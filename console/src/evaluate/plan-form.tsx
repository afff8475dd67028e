/** Maps columns to what is asked: which holds the text, which the label, what is asked, and what a label means. */
import type { ReactNode } from "react"
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import type { SetVersion } from "../batches/asked.ts"
import { SetChoice } from "../batches/set-choice.tsx"
import { Button } from "../parts/button.tsx"
import { AreaField, CheckField, Segments, SelectField, TextField } from "../parts/field.tsx"
import { listWords } from "../parts/format.ts"
import { Notice } from "../parts/page.tsx"
import { ModelSelect } from "../playground/model-select.tsx"
import { type QuestionType, questionTypes } from "../playground/draft.ts"
import { typeNames } from "../playground/question-card.tsx"
import { moved } from "../parts/moved.ts"
import type { Rows } from "../tables/rows.ts"
import { caseVariants, labelsOf } from "./labels.ts"
import { type Plan, askedOf, judgedQuestion, withLabels } from "./plan.ts"
import { t, tn } from "../i18n/translate.ts"

const typeOptions = questionTypes.map((value) => ({ value, label: typeNames[value] }))
const sources = [
  { value: "question", label: t("A question") },
  { value: "set", label: t("A question of a set") },
] as const

const labelsShownMax = 20
const optionsShownMax = 12
const describedMax = 100

interface FormProps {
  readonly plan: Plan
  readonly rows: Rows
  readonly set: SetVersion | null
  readonly models: readonly OrgModel[]
  readonly onChange: (plan: Plan) => void
}

export function PlanForm(props: FormProps & { disabled: boolean }): ReactNode {
  const { plan, rows, set, models, disabled, onChange } = props
  const columns = rows.columns.map((value) => ({ value, label: value }))
  const asked = askedOf(plan, set)
  const type = asked?.questions[judgedQuestion(plan, asked)]?.type
  return (
    <fieldset disabled={disabled} className="flex flex-col gap-4">
      <Segments
        label={t("What to ask")}
        value={plan.source}
        options={sources}
        onChange={(source) => onChange({ ...plan, source })}
      />
      <div className="grid grid-cols-1 gap-3 sm:grid-cols-2 lg:grid-cols-4">
        <SelectField
          label={t("Column with the text")}
          value={plan.evidence}
          options={columns}
          onChange={(event) => onChange({ ...plan, evidence: event.target.value })}
        />
        <SelectField
          label={t("Column with the label")}
          value={plan.label}
          options={columns}
          onChange={(event) =>
            onChange(withLabels({ ...plan, label: event.target.value, folded: null }, rows))
          }
        />
        {plan.source === "set" ? (
          <>
            <SetChoice
              chosen={plan.chosen}
              onChange={(chosen) =>
                onChange({
                  ...plan,
                  chosen,
                  question: chosen.setId === plan.chosen.setId ? plan.question : "",
                })
              }
            />
            {asked ? (
              <SelectField
                label={t("Question that the labels answer")}
                value={asked.questions[judgedQuestion(plan, asked)]?.name ?? ""}
                options={asked.questions.map(({ name }) => ({ value: name ?? "", label: name ?? "" }))}
                onChange={(event) => onChange({ ...plan, question: event.target.value })}
              />
            ) : null}
          </>
        ) : (
          <>
            <SelectField
              label={t("Kind of question")}
              value={plan.type}
              options={typeOptions}
              // The options are the kinds.
              onChange={(event) =>
                onChange(withLabels({ ...plan, type: event.target.value as QuestionType }, rows))
              }
            />
            <div className="flex flex-col gap-1">
              <span className="label">{t("Model")}</span>
              <ModelSelect
                tall
                label={t("Model")}
                models={models}
                value={plan.model}
                onChange={(model) => onChange({ ...plan, model })}
              />
            </div>
          </>
        )}
      </div>
      {plan.source === "question" ? (
        <AreaField
          label={t("Question to ask of every row")}
          rows={2}
          dir="auto"
          placeholder={t("Does the customer ask for money back?")}
          value={plan.instructions}
          onChange={(event) => onChange({ ...plan, instructions: event.target.value })}
        />
      ) : null}
      <CaseQuestion {...props} />
      {type === "predicate" ? <YesLabels {...props} /> : null}
      {plan.source === "question" && type === "score" ? <Levels plan={plan} onChange={onChange} /> : null}
      {plan.source === "question" && type !== "predicate" ? (
        <Descriptions plan={plan} onChange={onChange} />
      ) : null}
    </fieldset>
  )
}

/** Asked once; what was said can be changed. */
function CaseQuestion({ plan, rows, onChange }: FormProps): ReactNode {
  const variants = caseVariants(rows, plan.label)
  if (variants.length === 0) return null
  const say = (folded: boolean): void => onChange(withLabels({ ...plan, folded }, rows))
  const names = variants.slice(0, 3).map((group) => listWords(group.map((label) => `“${label}”`)))
  return (
    <Notice
      tone={plan.folded === null ? "warn" : "plain"}
      action={
        <div className="flex flex-wrap gap-2">
          <Button small disabled={plan.folded === true} onClick={() => say(true)}>
            {t("One label")}
          </Button>
          <Button small disabled={plan.folded === false} onClick={() => say(false)}>
            {t("Different labels")}
          </Button>
        </div>
      }
    >
      {t("{names} differ in case only.", {
        names: `${names.join("; ")}${variants.length > names.length ? "; …" : ""}`,
      })}{" "}
      {plan.folded === null
        ? t("Are they one label?")
        : plan.folded
          ? t("They are one label.")
          : t("They are different labels.")}
    </Notice>
  )
}

function YesLabels({ plan, rows, onChange }: FormProps): ReactNode {
  const labels = labelsOf(rows, plan.label, plan.folded ?? false)
  return (
    <fieldset className="flex flex-wrap gap-x-5 gap-y-2">
      <legend className="label mb-1.5">{t("Labels that mean yes")}</legend>
      {labels.slice(0, labelsShownMax).map((label) => (
        <CheckField
          key={label}
          label={label}
          checked={plan.yes.includes(label)}
          onChange={({ target: { checked } }) =>
            onChange({
              ...plan,
              yes: labels.filter((one) => (one === label ? checked : plan.yes.includes(one))),
            })
          }
        />
      ))}
    </fieldset>
  )
}

/** What each option means, which helps where its name alone does not say it. */
function Descriptions({ plan, onChange }: Pick<FormProps, "plan" | "onChange">): ReactNode {
  const { values, descriptions } = plan
  const shown = `${values.slice(0, optionsShownMax).join(", ")}${values.length > optionsShownMax ? ", …" : ""}`
  return (
    <details className="flex flex-col gap-2">
      <summary className="text-soft cursor-pointer text-xs">
        {plan.type === "score"
          ? tn(
              values.length,
              "{count} level: {values} · describe them",
              "{count} levels: {values} · describe them",
              { values: shown },
            )
          : tn(
              values.length,
              "{count} option: {values} · describe them",
              "{count} options: {values} · describe them",
              { values: shown },
            )}
      </summary>
      <div className="mt-2 grid gap-3 sm:grid-cols-2">
        {values.slice(0, describedMax).map((value) => (
          <TextField
            key={value}
            label={t("What “{value}” means (optional)", { value })}
            dir="auto"
            maxLength={1000}
            value={descriptions[value] ?? ""}
            onChange={(event) =>
              onChange({ ...plan, descriptions: { ...descriptions, [value]: event.target.value } })
            }
          />
        ))}
      </div>
    </details>
  )
}

function Levels({ plan, onChange }: { plan: Plan; onChange: (plan: Plan) => void }): ReactNode {
  return (
    <div>
      <p className="label mb-1.5">{t("Levels from low to high")}</p>
      <ol className="flex flex-wrap gap-2">
        {plan.values.map((value, index) => (
          <li key={value} className="bg-sunken flex items-center gap-1 rounded-md py-1 pe-1 ps-2.5 text-xs">
            <span className="number text-soft">{index}</span> {value}
            <Button
              kind="bare"
              small
              icon="up"
              disabled={index === 0}
              aria-label={t("Move {value} lower", { value })}
              onClick={() => onChange({ ...plan, values: moved(plan.values, index, index - 1) })}
            />
          </li>
        ))}
      </ol>
    </div>
  )
}
