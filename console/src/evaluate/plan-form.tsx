/** Maps columns to what is asked: which holds the text, which the label, and what a label means. */
import type { ReactNode } from "react"
import type { OrgModel } from "../../../src/contract/platform/models.ts"
import { Button } from "../parts/button.tsx"
import { AreaField, CheckField, SelectField } from "../parts/field.tsx"
import { plural } from "../parts/format.ts"
import { ModelSelect } from "../playground/model-select.tsx"
import type { QuestionType } from "../playground/draft.ts"
import { typeNames } from "../playground/question-card.tsx"
import { moved } from "../parts/moved.ts"
import { type Plan, labelsOf } from "./plan.ts"
import type { Rows } from "./rows.ts"

const typeOptions = Object.entries(typeNames).map(([value, label]) => ({ value, label }))

export function PlanForm({
  plan,
  rows,
  models,
  disabled,
  onChange,
}: {
  plan: Plan
  rows: Rows
  models: readonly OrgModel[]
  disabled: boolean
  onChange: (plan: Plan) => void
}): ReactNode {
  const columns = rows.columns.map((value) => ({ value, label: value }))
  const labels = labelsOf(rows, plan.label)
  const retype = (type: QuestionType, label = plan.label): void => {
    const found = labelsOf(rows, label)
    onChange({ ...plan, label, type, values: type === "predicate" ? found.slice(-1) : found })
  }
  return (
    <fieldset disabled={disabled} className="flex flex-col gap-4">
      <div className="grid grid-cols-1 gap-3 sm:grid-cols-2 lg:grid-cols-4">
        <SelectField
          label="Column with the text"
          value={plan.evidence}
          options={columns}
          onChange={(event) => onChange({ ...plan, evidence: event.target.value })}
        />
        <SelectField
          label="Column with the label"
          value={plan.label}
          options={columns}
          onChange={(event) => retype(plan.type, event.target.value)}
        />
        <SelectField
          label="Kind of question"
          value={plan.type}
          options={typeOptions}
          onChange={(event) => retype(event.target.value as QuestionType)}
        />
        <div className="flex flex-col gap-1">
          <span className="label">Model</span>
          <ModelSelect
            tall
            label="Model"
            models={models}
            value={plan.model}
            onChange={(model) => onChange({ ...plan, model })}
          />
        </div>
      </div>
      <AreaField
        label="Question to ask of every row"
        rows={2}
        dir="auto"
        placeholder="Does the customer ask for money back?"
        value={plan.instructions}
        onChange={(event) => onChange({ ...plan, instructions: event.target.value })}
      />
      {plan.type === "predicate" ? (
        <fieldset className="flex flex-wrap gap-x-5 gap-y-2">
          <legend className="label mb-1.5">Labels that mean yes</legend>
          {labels.slice(0, 20).map((label) => (
            <CheckField
              key={label}
              label={label}
              checked={plan.values.includes(label)}
              onChange={(event) =>
                onChange({
                  ...plan,
                  values: labels.filter((one) =>
                    one === label ? event.target.checked : plan.values.includes(one),
                  ),
                })
              }
            />
          ))}
        </fieldset>
      ) : null}
      {plan.type === "score" ? <Levels plan={plan} onChange={onChange} /> : null}
      {plan.type === "choice" ? (
        <p className="text-soft text-xs">
          {plural(plan.values.length, "option")}: {plan.values.slice(0, 12).join(", ")}
          {plan.values.length > 12 ? ", …" : ""}
        </p>
      ) : null}
    </fieldset>
  )
}

function Levels({ plan, onChange }: { plan: Plan; onChange: (plan: Plan) => void }): ReactNode {
  return (
    <div>
      <p className="label mb-1.5">Levels from low to high</p>
      <ol className="flex flex-wrap gap-2">
        {plan.values.map((value, index) => (
          <li key={value} className="bg-sunken flex items-center gap-1 rounded-md py-1 pr-1 pl-2.5 text-xs">
            <span className="number text-soft">{index}</span> {value}
            <Button
              kind="bare"
              small
              icon="up"
              disabled={index === 0}
              aria-label={`Move ${value} lower`}
              onClick={() => onChange({ ...plan, values: moved(plan.values, index, index - 1) })}
            />
          </li>
        ))}
      </ol>
    </div>
  )
}
