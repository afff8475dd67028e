/** Try a set: a text is asked about, and a wrong answer is corrected with one click and becomes an example. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import {
  type QuestionSet,
  type QuestionSetDecision,
  type SetVerdict,
  trialHeader,
} from "../../../src/contract/question-sets/sets.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { CopyButton } from "../parts/copy-button.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { AreaField } from "../parts/field.tsx"
import { Form } from "../parts/form.tsx"
import { percent, probability } from "../parts/format.ts"
import { Badge, Notice, Panel } from "../parts/page.tsx"
import { measuresOf, taughtWorth, worthOf } from "../playground/measured.ts"
import { modelsQuery, useTabStorage } from "../session.ts"
import { type LabelValue, labelName, labelOfVerdict, possibleLabels } from "./labels.ts"
import { useNewestJob } from "./job.tsx"
import { LabelSelect } from "./label-select.tsx"
import { type SetAddress, examplesKey, setsKey, versionsKey } from "./set-query.ts"
import { triedTextEntry } from "./set-tabs.ts"
import { TabLink } from "./tab-link.tsx"
import { artefactQuery } from "./taught-question.tsx"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

interface Tried {
  readonly input: string
  readonly decision: QuestionSetDecision
}

export function TryTab({ set, at }: { set: QuestionSet; at: SetAddress }): ReactNode {
  const storage = useTabStorage()
  const [input, setInput] = useState(() => {
    const kept = storage.read(triedTextEntry)
    return typeof kept === "string" ? kept : ""
  })
  const [tried, setTried] = useState<Tried | null>(null)
  const ask = useWrite(
    async () =>
      await api.decideQuestionSet({ params: at, headers: { [trialHeader]: "true" }, body: { input } }),
    [],
    (decision) => setTried({ input, decision }),
  )
  const blank = input.trim() === ""
  return (
    <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-2">
      <Panel title={t("Try a text")}>
        <Form
          label={t("Try a text")}
          write={ask}
          ready={!blank}
          footer={
            <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
              <Button type="submit" kind="loud" icon="play" disabled={blank} busy={ask.isPending}>
                {t("Ask the set")}
              </Button>
              <p className="text-soft flex-1 basis-48 text-xs">
                {t("Charged as a request. It does not count in monitoring, and is not for review.")}
              </p>
            </div>
          }
        >
          <AreaField
            label={t("Text")}
            rows={8}
            dir="auto"
            placeholder={t("Paste a text to judge.")}
            value={input}
            onChange={(event) => {
              setInput(event.target.value)
              storage.write(triedTextEntry, event.target.value)
            }}
          />
        </Form>
      </Panel>
      <Panel title={t("Answers")}>
        {tried ? (
          <Answers key={tried.input} set={set} at={at} tried={tried} stale={tried.input !== input} />
        ) : (
          <p className="text-soft text-sm">
            {set.questions.length === 0
              ? t("This set has no questions of its own: it calibrates those of a request.")
              : t(
                  "Ask the set to see its answers, how sure it is, and where it abstains. Correct what is wrong, and teach it.",
                )}
          </p>
        )}
      </Panel>
    </div>
  )
}

function Answers({
  set,
  at,
  tried: { input, decision },
  stale,
}: {
  set: QuestionSet
  at: SetAddress
  tried: Tried
  stale: boolean
}): ReactNode {
  const [taught, setTaught] = useState(0)
  return (
    <div className="flex flex-col gap-4">
      <ul aria-label={t("Answers")} className="divide-line flex flex-col divide-y">
        {decision.answers.map((answered) => (
          <Answered
            key={answered.name}
            set={set}
            at={at}
            input={input}
            answered={answered}
            version={decision.version}
            onTaught={() => setTaught((before) => before + 1)}
          />
        ))}
      </ul>
      <p className="text-soft text-xs" role="status">
        {t("Version {version} answered.", { version: decision.version })}
        {stale ? ` ${t("The text has changed since: ask again.")}` : ""}
      </p>
      {taught > 0 ? (
        <Notice tone="good">
          <T
            text="The set has {count} examples to learn from. <tabLink>Teach it</tabLink> when you have some twenty, and see what they change before you publish."
            one="The set has {count} example to learn from. <tabLink>Teach it</tabLink> when you have some twenty, and see what they change before you publish."
            count={set.counts.examples}
            tabLink={(children) => (
              <TabLink set={set} tab="teach">
                {children}
              </TabLink>
            )}
          />
        </Notice>
      ) : null}
    </div>
  )
}

function Answered({
  set,
  at,
  input,
  answered,
  version,
  onTaught,
}: {
  set: QuestionSet
  at: SetAddress
  input: string
  answered: SetVerdict
  /** That answered. */
  version: number
  onTaught: () => void
}): ReactNode {
  const [label, setLabel] = useState<LabelValue | null>(null)
  const write = useWrite(
    async (value: LabelValue) => {
      await saveExample(at, input, { [answered.name]: value })
      return value
    },
    [setsKey(at.org_id), examplesKey(at)],
    (value) => {
      setLabel(value)
      onTaught()
    },
  )
  const asked = set.questions.find(({ name }) => name === answered.name)
  const hash = useTaughtOf(at, version, answered)
  if (!asked) return null
  const given = labelOfVerdict(asked, answered.verdict, answered.abstained)
  return (
    <li
      aria-label={t("Answer to {name}", { name: asked.name })}
      className="flex flex-col gap-1.5 py-3 first:pt-0"
    >
      <div className="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1">
        <span className="min-w-0 flex-1 basis-48 text-sm wrap-anywhere" dir="auto">
          {asked.instructions}
          <span className="text-soft block text-xs">{asked.name}</span>
        </span>
        {answered.abstained ? (
          <Badge tone="warn">{t("Abstains")}</Badge>
        ) : (
          <span className="flex items-center gap-1">
            <strong className="text-sm font-semibold">{labelName(asked, given ?? answered.verdict)}</strong>
            <CopyButton
              bare
              label={t("Copy the answer to {name}", { name: asked.name })}
              text={labelName(asked, given ?? answered.verdict)}
            />
          </span>
        )}
      </div>
      <Sureness answered={answered} target={asked.target_accuracy} />
      <Promised at={at} name={asked.name} hash={hash} threshold={answered.threshold} />
      <Worth at={at} set={set} asked={asked} answered={answered} hash={hash} />
      <ErrorNotice error={write.error} />
      {label !== null ? (
        <p className="text-xs font-medium" role="status">
          {t("Saved as an example: {labelName}.", { labelName: labelName(asked, label) })}
        </p>
      ) : (
        <Correction
          name={asked.name}
          asked={asked}
          given={given}
          busy={write.isPending}
          onLabel={(value) => write.mutate(value)}
        />
      )}
    </li>
  )
}

/** How sure, against which threshold, and what is promised above it. */
function Sureness({ answered, target }: { answered: SetVerdict; target: number | null }): ReactNode {
  const { confidence, threshold, abstained, taught } = answered
  const parts = [
    t("{confidence} sure", { confidence: probability(confidence) }),
    threshold === null
      ? t("no threshold")
      : abstained
        ? t("below the threshold of {threshold}", { threshold: percent(threshold) })
        : t("threshold {threshold}", { threshold: percent(threshold) }),
    threshold !== null && target !== null
      ? t("answers above it are meant to be right {target} of the time", { target: percent(target) })
      : null,
    taught ? t("taught") : t("as the model answers, not taught"),
  ]
  return <p className="number text-soft text-xs">{parts.filter(Boolean).join(" · ")}</p>
}

/** What the version that answered was taught for the question; null where the answer is not of it. */
function useTaughtOf(at: SetAddress, version: number, { name, taught }: SetVerdict): string | null {
  const { data } = useQuery({
    queryKey: [...versionsKey(at), "one", version],
    enabled: taught,
    // A version never changes.
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => await api.getQuestionSetVersion({ params: { ...at, version: String(version) } }),
  })
  return (taught && data?.questions.find((question) => question.name === name)?.artefact) || null
}

/** What the last teaching promised, where the answer is of it and its threshold is no lower. */
function Promised({
  at,
  name,
  hash,
  threshold,
}: {
  at: SetAddress
  name: string
  hash: string | null
  threshold: number | null
}): ReactNode {
  const { data: job } = useNewestJob(at, "teach")
  const found = job?.kind === "teach" ? job.result?.questions.find((one) => one.name === name) : undefined
  const promise = hash !== null && found?.artefact === hash ? found.promise : null
  if (!promise?.promised || threshold === null || threshold < (promise.threshold ?? 1)) return null
  return (
    <p className="number text-soft text-xs">{t("Promised: {sentence}.", { sentence: promise.sentence })}</p>
  )
}

/** What such a confidence has been worth: of the set's own labelled rows, or else of the model. */
function Worth({
  at,
  set,
  asked,
  answered: { taught, confidence, answer },
  hash,
}: {
  at: SetAddress
  set: QuestionSet
  asked: QuestionSet["questions"][number]
  answered: SetVerdict
  hash: string | null
}): ReactNode {
  const { data: models = [] } = useQuery(modelsQuery(at.org_id))
  const artefact = useQuery({ ...artefactQuery(at, hash ?? ""), enabled: Boolean(hash) }).data
  const measures = taught ? null : measuresOf(models.find(({ model_sku }) => model_sku === set.model))
  const words = artefact
    ? taughtWorth(artefact.curve, confidence)
    : measures && answer.type !== "refusal"
      ? worthOf(measures, asked.type, confidence)
      : null
  return words ? <p className="number text-soft text-xs">{words}</p> : null
}

/** The other answers, as buttons where they are few. */
const buttonsMax = 5

function Correction({
  name,
  asked,
  given,
  busy,
  onLabel,
}: {
  name: string
  asked: QuestionSet["questions"][number]
  given: LabelValue | null
  busy: boolean
  onLabel: (value: LabelValue) => void
}): ReactNode {
  const labels = possibleLabels(asked)
  return (
    <div
      role="group"
      aria-label={t("Right answer to {name}", { name })}
      className="flex flex-wrap items-center gap-2"
    >
      {given === null ? (
        <span className="text-soft text-xs">{t("It is")}</span>
      ) : (
        <Button small icon="check" disabled={busy} onClick={() => onLabel(given)}>
          {t("Right")}
        </Button>
      )}
      {given === null ? null : <span className="text-soft text-xs">{t("or it should be")}</span>}
      {labels.length > buttonsMax ? (
        <LabelSelect
          label={t("Right answer to {name}", { name })}
          asked={asked}
          value={null}
          disabled={busy}
          onChange={(value) => value !== null && onLabel(value)}
        />
      ) : (
        labels
          .filter(({ value }) => value !== given)
          .map((one) => (
            <Button key={one.name} small disabled={busy} onClick={() => onLabel(one.value)}>
              {one.name}
            </Button>
          ))
      )}
    </div>
  )
}

/** A text that is an example already gets this label instead. */
async function saveExample(
  at: SetAddress,
  input: string,
  labels: Readonly<Record<string, LabelValue>>,
): Promise<void> {
  const body = { rows: [{ input, labels }], replace: true }
  const { refused } = await api.addQuestionSetExamples({ params: at, body })
  if (refused[0]) throw new Error(t("It cannot be an example: {reason}", { reason: refused[0].reason }))
}
