/** Makes a question set of the labelled rows and teaches it. */
import { useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { DecisionQuestion } from "../../../src/contract/decisions.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { SelectField } from "../parts/field.tsx"
import { Panel } from "../parts/page.tsx"
import { modelForTexts } from "../playground/models.ts"
import { modelsQuery, useOrganization } from "../session.ts"
import { asQuestionName } from "../sets/set-draft.ts"
import { setsKey } from "../sets/set-query.ts"
import type { StartDraft, StartRow } from "./start-draft.ts"
import { t, tn } from "../i18n/translate.ts"

const targets = ["0.8", "0.9", "0.95"].map((value) => ({
  value,
  label: t("{round}% of its answers are right", { round: Math.round(Number(value) * 100) }),
}))
/** Fewer cannot be split into what is learnt from and what is measured on. */
const labelsMin = 4

export function TeachRows({
  question,
  column,
  rows,
  made,
  onMade,
}: {
  question: DecisionQuestion
  /** Its name becomes that of the question. */
  column: string
  rows: readonly StartRow[]
  made: StartDraft["made"]
  onMade: (made: StartDraft["made"]) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const { data: models = [] } = useQuery(modelsQuery(org_id))
  const navigate = useNavigate()
  const [target, setTarget] = useState("0.9")
  const labelled = rows.flatMap(({ text, label }) => (label === null ? [] : [{ text, label }]))
  const missing = whatIsMissing(labelled)
  const model = modelForTexts(
    models,
    labelled.map(({ text }) => text),
  )
  const asked = { ...question, name: column === "" ? "answer" : asQuestionName(column) }
  const key = JSON.stringify(asked)
  const known = made?.asked === key ? made : null
  const start = useWrite(
    async () =>
      await teachRows({ org_id, model, asked, labelled, target: Number(target), setId: known?.id ?? null }),
    [setsKey(org_id)],
    ({ id, name }) => {
      onMade({ id, name, asked: key })
      void navigate({ to: "/o/$orgId/start", params: { orgId: org_id }, search: { set: name } })
    },
  )
  return (
    <Panel title={t("4. Teach")}>
      <div className="flex flex-col gap-3">
        <div className="flex flex-wrap items-end gap-3">
          <div className="w-64 max-w-full">
            <SelectField
              label={t("What you would like to be promised")}
              value={target}
              options={targets}
              onChange={(event) => setTarget(event.target.value)}
            />
          </div>
          <Button
            kind="loud"
            icon="play"
            disabled={missing !== null || model === ""}
            busy={start.isPending}
            onClick={() => start.mutate(undefined)}
          >
            {tn(labelled.length, "Teach from {count} label", "Teach from {count} labels")}
          </Button>
        </div>
        <p className="text-soft text-xs">
          {missing ??
            t(
              "{model} is asked about each labelled row: once to learn from it, and twice to compare before and after. Each is charged as a request.",
              { model },
            )}
        </p>
        <ErrorNotice error={start.error} />
      </div>
    </Panel>
  )
}

interface Labelled {
  readonly text: string
  readonly label: string | boolean | number
}

function whatIsMissing(labelled: readonly Labelled[]): string | null {
  if (labelled.length < labelsMin) return t("Label at least {labelsMin} rows; ten show more.", { labelsMin })
  return new Set(labelled.map(({ label }) => label)).size < 2
    ? t("All labels are the same: label rows with another answer too.")
    : null
}

/** All or nothing: a set that could not be taught is taken back. */
async function teachRows({
  org_id,
  model,
  asked,
  labelled,
  target,
  setId,
}: {
  org_id: string
  model: string
  asked: DecisionQuestion & { readonly name: string }
  labelled: readonly Labelled[]
  target: number
  /** The set that was made of these rows before. */
  setId: string | null
}): Promise<{ readonly id: string; readonly name: string }> {
  const set = setId === null ? await createSet(org_id, model, asked) : await readSet(org_id, setId)
  const params = { org_id, set_id: set.id }
  try {
    const rows = labelled.map(({ text, label }) => ({ input: text, labels: { [asked.name]: label } }))
    const { refused } = await api.addQuestionSetExamples({ params, body: { rows, replace: true } })
    if (refused[0])
      throw new Error(
        t("Row {row} cannot be used: {reason}", { row: refused[0].row, reason: refused[0].reason }),
      )
    await api.teachQuestionSet({ params, body: { target_accuracy: target } })
  } catch (error) {
    if (setId === null) await api.deleteQuestionSet({ params })
    throw error
  }
  return set
}

const readSet = async (org_id: string, set_id: string) =>
  await api.getQuestionSet({ params: { org_id, set_id } })

async function createSet(org_id: string, model: string, asked: DecisionQuestion & { readonly name: string }) {
  const body = {
    name: await freeName(org_id),
    description: t("Made by Quick start."),
    model,
    questions: [asked],
  }
  return await api.createQuestionSet({ params: { org_id }, body })
}

async function freeName(org_id: string): Promise<string> {
  const { data } = await api.listQuestionSets({ params: { org_id }, query: { limit: 200 } })
  const taken = new Set(data.map(({ name }) => name))
  for (let number = 1; ; number++) {
    const name = number === 1 ? "quick-start" : `quick-start-${number}`
    if (!taken.has(name)) return name
  }
}
