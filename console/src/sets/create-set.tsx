/** Makes a question set: an empty one, or from the playground's draft. */
import { useQuery } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { api, useWrite } from "../api.ts"
import { FormDialog } from "../parts/dialog.tsx"
import { AreaField, TextField } from "../parts/field.tsx"
import { Notice } from "../parts/page.tsx"
import { type Draft, question } from "../playground/draft.ts"
import { ModelSelect } from "../playground/model-select.tsx"
import { firstModel } from "../playground/models.ts"
import { modelsQuery, useOrganization } from "../session.ts"
import { type SetDraft, questionsOfDraft, whatIsWrongWithName, whatKeepsFromSaving } from "./set-draft.ts"
import { setsKey } from "./set-query.ts"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

export function SaveAsSet({ draft, onClose }: { draft: Draft; onClose: () => void }): ReactNode {
  return (
    <CreateSet title={t("Save as question set")} content={{ draft, settings: {} }} onClose={onClose}>
      <p className="text-soft text-sm">
        <T
          text="{count} questions for {model}. The text is not saved."
          one="{count} question for {model}. The text is not saved."
          count={draft.questions.length}
          model={<code>{draft.model}</code>}
        />
      </p>
    </CreateSet>
  )
}

export function NewSet({ onClose }: { onClose: () => void }): ReactNode {
  const { id: orgId } = useOrganization()
  const { data: models = [] } = useQuery(modelsQuery(orgId))
  const [chosen, setChosen] = useState("")
  const [first] = useState(() => question("predicate"))
  const [text, setText] = useState("")
  const model = chosen || firstModel(models, "decisions")
  const questions = text.trim() ? [{ ...first, instructions: text }] : []
  const draft: Draft = { api: "decisions", model, rival: null, evidence: "", questions }
  return (
    <CreateSet title={t("New question set")} content={{ draft, settings: {} }} onClose={onClose}>
      <label className="flex flex-col gap-1">
        <span className="label">{t("Model")}</span>
        <ModelSelect label={t("Model")} tall models={models} value={model} onChange={setChosen} />
      </label>
      <TextField
        label={t("First question (yes or no)")}
        value={text}
        placeholder={t("Does the customer ask for a refund?")}
        hint={t("Optional: more questions, and of other kinds, are added on the next page.")}
        onChange={(event) => setText(event.target.value)}
      />
    </CreateSet>
  )
}

function CreateSet({
  title,
  content,
  onClose,
  children,
}: {
  title: string
  content: SetDraft
  onClose: () => void
  children: ReactNode
}): ReactNode {
  const { id: org_id } = useOrganization()
  const navigate = useNavigate()
  const [name, setName] = useState("")
  const [description, setDescription] = useState("")
  const wrong = name === "" ? null : whatIsWrongWithName(name)
  const missing = whatKeepsFromSaving(content)
  const write = useWrite(
    async () =>
      await api.createQuestionSet({
        params: { org_id },
        body: { name, description, model: content.draft.model, questions: questionsOfDraft(content) },
      }),
    [setsKey(org_id)],
    (made) =>
      void navigate({
        to: "/o/$orgId/sets/$setName",
        params: { orgId: org_id, setName: made.name },
        search: {},
      }),
  )
  return (
    <FormDialog
      title={title}
      submit={t("Save set")}
      write={write}
      onClose={onClose}
      ready={wrong === null && missing === null}
    >
      {missing ? <Notice tone="warn">{missing}</Notice> : null}
      <TextField
        label={t("Name")}
        required
        autoFocus
        autoComplete="off"
        spellCheck={false}
        value={name}
        error={wrong}
        placeholder="refunds"
        hint={t("Asked as model “set:{name}”.", { name: name || "refunds" })}
        onChange={(event) => setName(event.target.value)}
      />
      <AreaField
        label={t("Description (optional)")}
        rows={2}
        spellCheck
        value={description}
        onChange={(event) => setDescription(event.target.value)}
      />
      {children}
    </FormDialog>
  )
}
