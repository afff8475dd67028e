/** What the organization keeps of its requests: how much, how long, what is replaced, and how it is deleted or taken out. */
import { queryOptions, useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import type { ContentSettings } from "../../../src/contract/content.ts"
import { api, useWrite } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { Form } from "../parts/form.tsx"
import { ago, count } from "../parts/format.ts"
import { Loaded, Notice, Panel } from "../parts/page.tsx"
import { useIsOwner, useOrganization } from "../session.ts"
import { dropReasonWords } from "./content-words.ts"
import { DeleteContents, ExportLink } from "./delete-contents.tsx"
import { KeptFields, keptDraft, keptOf } from "./kept-fields.tsx"
import { RedactionFields, RedactionSet, isUsable, patternRow } from "./redaction-fields.tsx"
import { T } from "../i18n/sentence.tsx"
import { t, tn } from "../i18n/translate.ts"

export const contentKey = (org_id: string): readonly unknown[] => ["content", org_id]

export const contentSettingsQuery = (org_id: string) =>
  queryOptions({
    queryKey: [...contentKey(org_id), "settings"],
    queryFn: async () => await api.getContentSettings({ params: { org_id } }),
  })

export function ContentPanel(): ReactNode {
  const { id: org_id } = useOrganization()
  const query = useQuery(contentSettingsQuery(org_id))
  return (
    <Panel title={t("Kept content")}>
      <Loaded query={query} label={t("Loading the settings")}>
        {(settings) => (
          <div className="flex flex-col gap-5">
            <SettingsForm settings={settings} />
            <Stored settings={settings} />
          </div>
        )}
      </Loaded>
    </Panel>
  )
}

function SettingsForm({ settings }: { settings: ContentSettings }): ReactNode {
  const { id: org_id } = useOrganization()
  const owner = useIsOwner()
  const [kept, setKept] = useState(() => keptDraft(settings))
  const [patterns, setPatterns] = useState(() => settings.redact.patterns.map(patternRow))
  const [set, setSet] = useState(settings.redact.question_set)
  const wanted = keptOf(kept)
  const disabled = !owner || !settings.available
  const write = useWrite(
    async () =>
      await api.putContentSettings({
        params: { org_id },
        headers: { "if-match": `"${settings.version}"` },
        body: {
          ...wanted,
          redact: {
            patterns: patterns.map(({ name, pattern }) => ({ name: name.trim(), pattern })),
            question_set: set,
          },
        },
      }),
    [contentKey(org_id), ["sets", org_id]],
  )
  const keeps = kept.keep !== "nothing"
  return (
    <Form
      label={t("Kept content")}
      write={write}
      ready={wanted !== null && patterns.every(isUsable)}
      footer={
        owner ? (
          <Button
            type="submit"
            kind="loud"
            className="self-start"
            busy={write.isPending}
            disabled={disabled || wanted === null || !patterns.every(isUsable)}
          >
            {t("Save")}
          </Button>
        ) : (
          <Notice tone="info">{t("Only owners can change these settings.")}</Notice>
        )
      }
    >
      {settings.available ? null : (
        <Notice tone="warn">
          {t(
            "Nothing can be kept: this installation has no key to encrypt content with. The operator sets content.keys.",
          )}
        </Notice>
      )}
      <KeptFields draft={kept} disabled={disabled} onChange={setKept} />
      {keeps ? (
        <>
          <RedactionFields rows={patterns} disabled={disabled} onChange={(rows) => setPatterns([...rows])} />
          <RedactionSet value={set} disabled={disabled} onChange={setSet} />
          <p className="text-soft text-xs">
            {t(
              "Content is encrypted, read only by members of this organization, and every reading is in the audit log.",
            )}
          </p>
        </>
      ) : null}
      {write.isSuccess ? <Notice tone="good">{t("Saved. It holds from the next request on.")}</Notice> : null}
    </Form>
  )
}

function Stored({ settings: { stored, dropped } }: { settings: ContentSettings }): ReactNode {
  const owner = useIsOwner()
  const [deleting, setDeleting] = useState(false)
  return (
    <div className="border-line flex flex-col gap-3 border-t pt-4">
      <p className="number text-sm">
        <T
          text="Content of <b>{count} requests</b> is stored."
          one="Content of <b>{count} request</b> is stored."
          count={stored}
          b={(children) => <strong className="font-medium">{children}</strong>}
        />
      </p>
      {dropped.count > 0 ? <Notice tone="warn">{droppedSentence(dropped)}</Notice> : null}
      {owner && stored > 0 ? (
        <div className="flex flex-wrap gap-2">
          <ExportLink />
          <Button kind="bad" small icon="trash" onClick={() => setDeleting(true)}>
            {t("Delete content")}
          </Button>
        </div>
      ) : null}
      {deleting ? <DeleteContents onClose={() => setDeleting(false)} /> : null}
    </div>
  )
}

function droppedSentence({ count: many, last_at, reasons: given }: ContentSettings["dropped"]): string {
  const reasons = given.map(({ reason, count: of }) => `${count(of)} ${dropReasonWords(reason)}`).join("; ")
  return last_at
    ? tn(
        many,
        "{count} request should have been kept and was not, last {lastAt}: {reasons}.",
        "{count} requests should have been kept and were not, last {lastAt}: {reasons}.",
        { lastAt: ago(last_at), reasons },
      )
    : tn(
        many,
        "{count} request should have been kept and was not: {reasons}.",
        "{count} requests should have been kept and were not: {reasons}.",
        { reasons },
      )
}
