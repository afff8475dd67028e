/** The questions of a set, written as in the playground, each with its threshold; saving makes a version. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useId, useState } from "react"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { ClientError, api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { AreaField, SelectField } from "../parts/field.tsx"
import { moment } from "../parts/format.ts"
import { NumberField } from "../parts/number-field.tsx"
import { Notice } from "../parts/page.tsx"
import { type NumberBounds, numberText, readNumber } from "../parts/typed-number.ts"
import { ModelSelect } from "../playground/model-select.tsx"
import { Questions } from "../playground/questions.tsx"
import { modelsQuery, useOrganization } from "../session.ts"
import { readRules, rulesText } from "./rules-text.ts"
import { type QuestionSettings, questionsOfDraft, whatKeepsFromSaving } from "./set-draft.ts"
import { setsKey } from "./set-query.ts"
import { targetBounds } from "./teach-tab.tsx"
import type { SetEditor } from "./use-set-editor.ts"
import { t } from "../i18n/translate.ts"

export function QuestionsTab({ set, editor }: { set: QuestionSet; editor: SetEditor }): ReactNode {
  const { id: orgId } = useOrganization()
  const { data: models = [] } = useQuery(modelsQuery(orgId))
  const { draft } = editor.current
  return (
    <div className="flex max-w-4xl flex-col gap-4">
      <label className="flex flex-wrap items-center gap-2">
        <span className="label">{t("Model")}</span>
        <ModelSelect
          label={t("Model")}
          models={models}
          value={draft.model}
          onChange={(model) => editor.changeDraft({ ...draft, model })}
        />
      </label>
      <p className="text-soft text-xs">
        {t(
          "Below its threshold the set abstains from a question, or answers it all the same. With a target accuracy, teaching chooses a threshold above which answers are right that often.",
        )}
      </p>
      {draft.questions.length === 0 ? (
        <Notice tone="info">
          {t(
            "Without questions of its own, a set takes those of each request and only calibrates the answers.",
          )}
        </Notice>
      ) : null}
      <Questions
        draft={draft}
        onChange={editor.changeDraft}
        onRemove={(questions) => editor.changeDraft({ ...draft, questions })}
        settings={({ id }, number) => (
          <Settings
            number={number}
            value={editor.settingsOf(id)}
            onChange={(settings) => editor.changeSettings(id, settings)}
          />
        )}
      />
      <SaveBar set={set} editor={editor} />
    </div>
  )
}

const thresholdBounds = { min: 0, max: 1 }

function Settings({
  number,
  value,
  onChange,
}: {
  number: number
  value: QuestionSettings
  onChange: (value: QuestionSettings) => void
}): ReactNode {
  return (
    <div
      role="group"
      aria-label={t("Settings of question {number}", { number })}
      className="border-line grid grid-cols-1 gap-3 border-t pt-3 sm:grid-cols-3"
    >
      <PercentField
        label={t("Threshold, %")}
        bounds={thresholdBounds}
        value={value.threshold}
        onChange={(threshold) => onChange({ ...value, threshold })}
      />
      <SelectField
        label={t("Below the threshold")}
        value={value.below}
        disabled={value.threshold === null}
        options={[
          { value: "abstain", label: t("Abstain") },
          { value: "answer", label: t("Answer anyway") },
        ]}
        onChange={(event) =>
          onChange({ ...value, below: event.target.value === "answer" ? "answer" : "abstain" })
        }
      />
      <PercentField
        label={t("Target accuracy, %")}
        bounds={targetBounds}
        value={value.target_accuracy}
        onChange={(target_accuracy) => onChange({ ...value, target_accuracy })}
      />
      <div className="sm:col-span-3">
        <RulesField value={value} onChange={onChange} />
      </div>
    </div>
  )
}

/** Keeps what is typed until it can be read. */
function RulesField({
  value,
  onChange,
}: {
  value: QuestionSettings
  onChange: (value: QuestionSettings) => void
}): ReactNode {
  const [typed, setTyped] = useState<string | null>(null)
  const read = readRules(typed ?? "")
  return (
    <AreaField
      label={t("Rules (optional)")}
      rows={Math.max(1, value.rules?.length ?? 0)}
      placeholder='input.tier in ["gold", "enterprise"] => at least High'
      value={typed ?? rulesText(value.rules)}
      error={typed !== null && typeof read === "string" ? read : null}
      hint={t(
        "In CEL over the fields of the text, one on each line. A rule that is met makes its answer more likely; teaching weighs it anew.",
      )}
      onChange={(event) => {
        setTyped(event.target.value)
        const rules = readRules(event.target.value)
        if (typeof rules === "string") return
        const { rules: _, ...rest } = value
        onChange(rules ? { ...rest, rules } : rest)
      }}
      onBlur={() => {
        if (typeof read !== "string") setTyped(null)
      }}
    />
  )
}

/** Keeps what is typed, so that “95.” can become “95.5”. What cannot be read is NaN, which keeps the set from being saved. */
function PercentField({
  label,
  bounds,
  value,
  onChange,
}: {
  label: string
  bounds: NumberBounds
  value: number | null
  onChange: (value: number | null) => void
}): ReactNode {
  const [typed, setTyped] = useState<string | null>(null)
  return (
    <NumberField
      kind="percentage"
      bounds={bounds}
      label={label}
      placeholder={t("none")}
      value={typed ?? numberText(Number.isNaN(value) ? null : value, "percentage")}
      onText={(text) => {
        setTyped(text)
        const read = readNumber(text, "percentage", bounds)
        onChange(read.problem === null ? read.value : Number.NaN)
      }}
      onBlur={() => {
        if (!Number.isNaN(value)) setTyped(null)
      }}
    />
  )
}

function SaveBar({ set, editor }: { set: QuestionSet; editor: SetEditor }): ReactNode {
  const { id: org_id } = useOrganization()
  const [note, setNote] = useState("")
  const id = useId()
  const { current, base, changed, isStale, keptAt, reset, rebase } = editor
  const missing = whatKeepsFromSaving(current)
  const write = useWrite(
    async () =>
      await api.updateQuestionSet({
        params: { org_id, set_id: set.id },
        headers: { "if-match": `"${base.revision}"` },
        body: {
          model: current.draft.model,
          questions: questionsOfDraft(current),
          ...(note.trim() ? { note: note.trim() } : {}),
        },
      }),
    [setsKey(org_id)],
    (saved) => {
      reset(saved)
      setNote("")
    },
  )
  if (!changed)
    return (
      <p role="status" className="text-soft text-xs">
        {write.isSuccess
          ? `${t("Saved as version {version}.", { version: set.latest_version })} ${set.production_version === null ? "" : t("Publish it under Versions.")}`
          : t("This is version {latestVersion}. A change is saved as a new version; versions never change.", {
              latestVersion: set.latest_version,
            })}
      </p>
    )
  const refused = write.error instanceof ClientError && write.error.code === "precondition_failed"
  return (
    <div
      role="group"
      aria-label={t("Unsaved changes")}
      className="bg-panel border-strong shadow-lift sticky bottom-3 z-10 flex flex-col gap-2 rounded-lg border p-3"
    >
      {isStale || refused ? (
        <Notice
          tone="warn"
          action={
            <Button
              small
              onClick={() => {
                write.reset()
                rebase(set)
              }}
            >
              {t("Keep my changes")}
            </Button>
          }
        >
          {t(
            "Version {latestVersion} was saved meanwhile. Discard your changes to see it, or keep them and save them over it.",
            { latestVersion: set.latest_version },
          )}
        </Notice>
      ) : (
        <ErrorNotice error={write.error} />
      )}
      <p role="status" className="text-soft text-xs">
        {keptAt === null
          ? t("Not saved yet. Your changes stay in this browser until you save or discard them.")
          : t("Your changes of {keptAt}, not saved yet.", { keptAt: moment(keptAt) })}
      </p>
      <div className="flex flex-wrap items-center gap-2">
        <label htmlFor={id} className="sr-only">
          {t("Note for the list of versions")}
        </label>
        <input
          id={id}
          className="control flex-1 basis-full sm:basis-48"
          maxLength={500}
          placeholder={t("Why (optional)")}
          value={note}
          onChange={(event) => setNote(event.target.value)}
        />
        <Button onClick={() => reset(set)}>{t("Discard")}</Button>
        <Button
          kind="loud"
          icon="check"
          busy={write.isPending}
          disabled={missing !== null || isStale}
          onClick={() => write.mutate(undefined)}
        >
          {t("Save version {latestVersion}", { latestVersion: set.latest_version + 1 })}
        </Button>
      </div>
      {missing ? <p className="text-soft text-xs">{missing}</p> : null}
    </div>
  )
}
