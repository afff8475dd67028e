/** Saves the rows of an evaluation, with the labels of the file, as examples that a question set learns from. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import type { DecisionQuestion } from "../../../src/contract/decisions.ts"
import { api, useWrite } from "../api.ts"
import type { Sheet } from "../batches/sheet.ts"
import { FormDialog } from "../parts/dialog.tsx"
import { SelectField, TextField } from "../parts/field.tsx"
import { useOrganization } from "../session.ts"
import { type LabelValue, possibleLabels } from "../sets/labels.ts"
import { asQuestionName, whatIsWrongWithName } from "../sets/set-draft.ts"
import { setQuery, setsKey } from "../sets/set-query.ts"
import type { JudgedRow } from "./judged.ts"
import { t, tn } from "../i18n/translate.ts"

export interface SavedExamples {
  readonly setName: string
  readonly added: number
  readonly known: number
  /** Left out: contradicting a known example, or refused. */
  readonly leftOut: number
}

const rowsPerRequest = 100
const unchosen = { value: "", label: t("Choose") }

/** Of the list of sets: one that is made of the evaluated question. */
const newSet = "new"

export function SaveExamples({
  sheet,
  rows,
  onSaved,
  onClose,
}: {
  sheet: Sheet
  rows: readonly JudgedRow[]
  onSaved: (saved: SavedExamples) => void
  onClose: () => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const [setId, setSetId] = useState("")
  const [name, setName] = useState("")
  const { data: sets = [] } = useQuery({
    queryKey: [...setsKey(org_id), "examples of an evaluation"],
    queryFn: async () => (await api.listQuestionSets({ params: { org_id } })).data,
  })
  const chosen = useQuery({ ...setQuery(org_id, setId), enabled: setId !== "" && setId !== newSet }).data
  const evaluated = sheet.model.startsWith("set:")
    ? undefined
    : sheet.questions[sheet.labelling?.question ?? 0]
  const isNew = setId === newSet
  const [newName, setNewName] = useState("")
  const wrongName = newName === "" ? null : whatIsWrongWithName(newName)
  const asked = isNew ? evaluated : chosen?.questions.find((question) => question.name === name)
  const labelled = asked ? labelRows(asked, rows) : []
  const write = useWrite(
    async () => {
      const set = isNew && evaluated ? await createSet(org_id, newName, sheet.model, evaluated) : chosen
      if (!set) throw new Error(t("Choose a question set."))
      const question = isNew ? (set.questions[0]?.name ?? "") : name
      return { ...(await saveRows({ org_id, set_id: set.id }, question, labelled)), setName: set.name }
    },
    [setsKey(org_id)],
    (saved) => {
      onSaved(saved)
      onClose()
    },
  )
  return (
    <FormDialog
      title={t("Teach a set from these rows")}
      submit={
        labelled.length > 0 ? tn(labelled.length, "Save {count} example", "Save {count} examples") : t("Save")
      }
      write={write}
      onClose={onClose}
      ready={labelled.length > 0 && (!isNew || (newName !== "" && wrongName === null))}
    >
      <p className="text-soft text-sm">
        {tn(
          rows.length,
          "{count} row with the labels of your file. The set learns from them when it is taught.",
          "{count} rows with the labels of your file. The set learns from them when it is taught.",
        )}
      </p>
      <SelectField
        label={t("Question set")}
        value={setId}
        options={[
          unchosen,
          ...(evaluated ? [{ value: newSet, label: t("A new set with this question") }] : []),
          ...sets.map((set) => ({ value: set.id, label: set.name })),
        ]}
        onChange={(event) => {
          setSetId(event.target.value)
          setName("")
        }}
      />
      {isNew ? (
        <TextField
          label={t("Name of the set")}
          required
          autoComplete="off"
          spellCheck={false}
          value={newName}
          error={wrongName}
          hint={t("Asked as model “set:{newName}”.", { newName: newName || "refunds" })}
          onChange={(event) => setNewName(event.target.value)}
        />
      ) : (
        <SelectField
          label={t("Question that the labels answer")}
          value={name}
          disabled={!chosen}
          options={[
            unchosen,
            ...(chosen?.questions ?? []).map((question) => ({ value: question.name, label: question.name })),
          ]}
          error={
            asked && labelled.length < rows.length
              ? tn(
                  rows.length - labelled.length,
                  "{count} row with a label that is no answer to it.",
                  "{count} rows with a label that is no answer to it.",
                )
              : null
          }
          onChange={(event) => setName(event.target.value)}
        />
      )}
    </FormDialog>
  )
}

async function createSet(org_id: string, name: string, model: string, asked: DecisionQuestion) {
  const questions = [{ ...asked, name: asQuestionName(asked.name || name) }]
  return await api.createQuestionSet({ params: { org_id }, body: { name, model, questions } })
}

interface LabelledRow {
  readonly input: string
  readonly label: LabelValue
}

/** Those whose label is an answer to the question. */
function labelRows(asked: DecisionQuestion, rows: readonly JudgedRow[]): LabelledRow[] {
  const labels = new Map(possibleLabels(asked).map(({ name, value }) => [name, value]))
  return rows.flatMap(({ evidence, gold }) => {
    const label = labels.get(gold)
    return label === undefined ? [] : [{ input: evidence, label }]
  })
}

async function saveRows(
  params: { readonly org_id: string; readonly set_id: string },
  question: string,
  rows: readonly LabelledRow[],
): Promise<Omit<SavedExamples, "setName">> {
  const saved = { added: 0, known: 0, leftOut: 0 }
  for (let from = 0; from < rows.length; from += rowsPerRequest) {
    const page = rows.slice(from, from + rowsPerRequest)
    const result = await api.addQuestionSetExamples({
      params,
      body: { rows: page.map(({ input, label }) => ({ input, labels: { [question]: label } })) },
    })
    saved.added += result.added + result.updated
    saved.known += result.duplicates
    saved.leftOut += result.contradictions_count + result.refused_count
  }
  return saved
}
