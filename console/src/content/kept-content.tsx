/** “Evidence and answers” of a request: its kept content, opened on demand because every reading is recorded. */
import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { ContentState } from "../../../src/contract/sequences.ts"
import type {
  ContentAnswer,
  ContentMessage,
  ContentQuestion,
  KeptContent,
} from "../../../src/contract/content.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog } from "../parts/dialog.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { moment, probability } from "../parts/format.ts"
import { Badge, Loaded, Panel } from "../parts/page.tsx"
import { packChat } from "../playground/chat-draft.ts"
import { packDraft } from "../playground/keep.ts"
import { useIsOwner, useOrganization } from "../session.ts"
import { chatOfContent, draftOfContent } from "./draft-of-content.ts"
import { T } from "../i18n/sentence.tsx"
import { t, tn } from "../i18n/translate.ts"

const absent: Record<Exclude<ContentState, "answers" | "evidence_and_answers">, string> = {
  none: t("Nothing is kept of this request."),
  redacting: t(
    "The content of this request waits to be redacted. It is kept after that; this page looks again.",
  ),
  deleted: t("The content of this request was deleted."),
  expired: t("The content of this request was deleted at the end of its retention."),
}

export function KeptContentPanel({
  seqId,
  state,
  follows,
}: {
  seqId: string
  state: ContentState
  /** It may still be stored, and the page looks again. */
  follows: boolean
}): ReactNode {
  const { id: orgId } = useOrganization()
  const [shown, setShown] = useState(false)
  if (follows)
    return (
      <Panel title={t("Text and answers")}>
        <p role="status" className="text-soft text-sm">
          {t(
            "Nothing is stored yet. What is kept of a request is stored shortly after its record; this page looks again for a minute.",
          )}
        </p>
      </Panel>
    )
  if (state !== "answers" && state !== "evidence_and_answers")
    return (
      <Panel title={t("Text and answers")}>
        <p className="text-soft text-sm">
          {absent[state]}{" "}
          {state === "none" ? (
            <>
              <T
                text="What is kept is chosen in <a>Settings</a>."
                a={(children) => (
                  <Link to="/o/$orgId/settings" params={{ orgId }} className="text-accent underline">
                    {children}
                  </Link>
                )}
              />
            </>
          ) : null}
        </p>
      </Panel>
    )
  return (
    <Panel title={t("Text and answers")}>
      {shown ? (
        <Content seqId={seqId} />
      ) : (
        <div className="flex flex-wrap items-center justify-between gap-3">
          <p className="text-soft text-sm">
            {state === "answers" ? t("The answers were kept.") : t("The text and the answers were kept.")}{" "}
            {t("Reading them is recorded in the audit log.")}
          </p>
          <Button icon="eye" onClick={() => setShown(true)}>
            {t("Show content")}
          </Button>
        </div>
      )}
    </Panel>
  )
}

function Content({ seqId: seq_id }: { seqId: string }): ReactNode {
  const { id: org_id } = useOrganization()
  const query = useQuery({
    queryKey: ["content", org_id, "one", seq_id],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => await api.getContent({ params: { org_id, seq_id } }),
  })
  return (
    <Loaded query={query} label={t("Loading the content")}>
      {(content) => (
        <div className="flex flex-col gap-4">
          <Evidence content={content} />
          {content.answers.length > 0 ? <Answers content={content} /> : null}
          {content.output === null ? null : <Messages label={t("Output")} messages={content.output} />}
          <Footer content={content} />
        </div>
      )}
    </Loaded>
  )
}

function Evidence({ content: { evidence, input } }: { content: KeptContent }): ReactNode {
  if (evidence !== null) return <Text label={t("Text")} text={evidence} />
  if (input === null)
    return <p className="text-soft text-sm">{t("The text that was asked about was not kept.")}</p>
  return (
    <>
      <Messages label={t("Input")} messages={input.messages} />
      {input.texts.map((text, index) => (
        <Text
          key={index}
          label={t("Input {index}", { index: index + 1 })}
          text={text ?? t("Sent as tokens, which are not kept.")}
        />
      ))}
    </>
  )
}

const roleNames: Record<ContentMessage["role"], string> = {
  system: t("Instructions"),
  user: t("User"),
  assistant: t("Assistant"),
  tool: t("Tool"),
}

function Messages({ label, messages }: { label: string; messages: readonly ContentMessage[] }): ReactNode {
  if (messages.length === 0) return null
  return (
    <div>
      <p className="label mb-1">{label}</p>
      <ol
        tabIndex={0}
        aria-label={label}
        className="bg-sunken divide-line flex max-h-80 flex-col divide-y overflow-auto rounded-lg px-3 text-sm"
      >
        {messages.map(({ role, content, reasoning, tool_calls }, index) => (
          <li key={index} className="py-2">
            <span className="text-soft block text-xs">{roleNames[role]}</span>
            {reasoning ? (
              <span dir="auto" className="text-soft block wrap-anywhere whitespace-pre-wrap">
                {reasoning}
              </span>
            ) : null}
            <span dir="auto" className="block wrap-anywhere whitespace-pre-wrap">
              {content}
            </span>
            {tool_calls?.map((call) => (
              <code key={call.id} className="block text-xs wrap-anywhere whitespace-pre-wrap">
                {call.name}({call.arguments})
              </code>
            ))}
          </li>
        ))}
      </ol>
    </div>
  )
}

function Text({ label, text }: { label: string; text: string }): ReactNode {
  return (
    <div>
      <p className="label mb-1">{label}</p>
      <pre
        tabIndex={0}
        aria-label={label}
        className="bg-sunken max-h-80 overflow-auto rounded-lg p-3 font-sans text-sm whitespace-pre-wrap wrap-anywhere"
      >
        {text}
      </pre>
    </div>
  )
}

function Answers({ content: { answers, questions } }: { content: KeptContent }): ReactNode {
  return (
    <ul aria-label={t("Answers")} className="divide-line flex flex-col divide-y">
      {answers.map((answer, index) => (
        <li
          key={answer.name ?? index}
          className="flex flex-wrap items-baseline justify-between gap-x-6 gap-y-1 py-2"
        >
          <span className="min-w-0 flex-1 basis-64 text-sm wrap-anywhere">
            {questions[index]?.instructions ?? answer.name}
            {answer.name && questions[index] ? (
              <span className="text-soft block text-xs">{answer.name}</span>
            ) : null}
          </span>
          <span className="number flex items-center gap-3 text-sm">
            {answer.abstained ? (
              <Badge tone="warn">{t("Abstained")}</Badge>
            ) : (
              <strong className="font-medium">{verdictName(questions[index], answer.verdict)}</strong>
            )}
            <span className="text-soft text-xs">{probability(answer.confidence)}</span>
          </span>
        </li>
      ))}
    </ul>
  )
}

/** A level by its description, everything else as it is. */
function verdictName(question: ContentQuestion | undefined, verdict: ContentAnswer["verdict"]): string {
  if (verdict === null) return "none"
  const level = question?.type === "score" ? question.options.find(({ value }) => value === verdict) : null
  if (level) return level.description
  return typeof verdict === "boolean" ? (verdict ? "yes" : "no") : String(verdict)
}

function Footer({ content }: { content: KeptContent }): ReactNode {
  const { id: org_id } = useOrganization()
  const owner = useIsOwner()
  const navigate = useNavigate()
  const [deleting, setDeleting] = useState(false)
  const [draft, chat] = [draftOfContent(content), chatOfContent(content)]
  const params = { orgId: org_id }
  const open = useWrite(
    async () => {
      if (draft) await navigate({ to: "/o/$orgId/playground", params, hash: `d=${await packDraft(draft)}` })
      if (chat) await navigate({ to: "/o/$orgId/chat", params, hash: `c=${await packChat(chat)}` })
    },
    [],
    () => undefined,
  )
  return (
    <div className="border-line flex flex-col gap-3 border-t pt-3">
      <p className="text-soft text-xs">
        {t("Will be deleted on {expiresAt}.", { expiresAt: moment(content.expires_at) })}
        {content.redactions > 0
          ? ` ${tn(content.redactions, "{count} passage redacted before storing.", "{count} passages redacted before storing.")}`
          : ""}
        {content.reference ? ` ${t("Reference {reference}.", { reference: content.reference })}` : ""}
      </p>
      <ErrorNotice error={open.error} />
      <div className="flex flex-wrap gap-2">
        {draft || chat ? (
          <Button small icon="play" busy={open.isPending} onClick={() => open.mutate(undefined)}>
            {draft ? t("Open in playground") : t("Open in chat")}
          </Button>
        ) : null}
        {owner ? (
          <Button small kind="bad" icon="trash" onClick={() => setDeleting(true)}>
            {t("Delete content")}
          </Button>
        ) : null}
      </div>
      {deleting ? (
        <ConfirmDialog
          title={t("Delete the content of this request?")}
          submit={t("Delete content")}
          act={async () => await api.deleteContent({ params: { org_id, seq_id: content.seq_id } })}
          refreshes={[["content", org_id], ["sequence"], ["sequences"], ["requests"]]}
          onClose={() => setDeleting(false)}
        >
          {t("The text and the answers are deleted for good; the record with its times and costs stays.")}
        </ConfirmDialog>
      ) : null}
    </div>
  )
}
