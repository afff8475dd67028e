/** What is kept of the requests of one API key: what the organization has set, or its own. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import type { KeyContentSettings } from "../../../src/contract/content.ts"
import type { ApiKey } from "../../../src/contract/platform/keys.ts"
import { api, useWrite } from "../api.ts"
import { Dialog, FormDialog } from "../parts/dialog.tsx"
import { Segments } from "../parts/field.tsx"
import { Badge, Loaded, Notice } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { contentKey, contentSettingsQuery } from "./content-panel.tsx"
import { keptSentence } from "./content-words.ts"
import { KeptFields, keptDraft, keptOf } from "./kept-fields.tsx"
import { t } from "../i18n/translate.ts"

export function KeyContentDialog({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }): ReactNode {
  const { id: org_id } = useOrganization()
  const organization = useQuery(contentSettingsQuery(org_id))
  const own = useQuery({
    queryKey: [...contentKey(org_id), "key", apiKey.id],
    queryFn: async () => await api.getKeyContentSettings({ params: { org_id, key_id: apiKey.id } }),
  })
  const data = organization.data && own.data ? { organization: organization.data, own: own.data } : undefined
  if (data === undefined)
    return (
      <Dialog title={title(apiKey)} onClose={onClose}>
        <Loaded query={own.data ? organization : own} label={t("Loading the settings")}>
          {() => null}
        </Loaded>
      </Dialog>
    )
  return (
    <KeyContentForm
      apiKey={apiKey}
      settings={data.own}
      daysMax={data.organization.retention_days}
      inherited={keptSentence(data.organization)}
      onClose={onClose}
    />
  )
}

const badgeWords = {
  nothing: t("Keeps nothing"),
  answers: t("Keeps answers"),
  evidence_and_answers: t("Keeps texts and answers"),
} as const

/** Beside the name of a key whose requests are kept otherwise than the organization's. */
export function KeyContentBadge({ keyId }: { keyId: string }): ReactNode {
  const { id: org_id } = useOrganization()
  const own = useQuery(contentSettingsQuery(org_id)).data?.keys.find(({ api_key_id }) => api_key_id === keyId)
  if (!own) return null
  return (
    <Badge tone="info" title={keptSentence(own)}>
      {badgeWords[own.keep]}
    </Badge>
  )
}

const title = ({ name }: ApiKey): string => t("Kept content of {name}", { name })

function KeyContentForm({
  apiKey,
  settings,
  daysMax,
  inherited,
  onClose,
}: {
  apiKey: ApiKey
  settings: KeyContentSettings
  daysMax: number
  inherited: string
  onClose: () => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const [isOwn, setOwn] = useState(settings.content !== null)
  const [kept, setKept] = useState(() => keptDraft(settings.content ?? settings.effective))
  const wanted = keptOf(kept, daysMax)
  const write = useWrite(
    async () =>
      await api.putKeyContentSettings({
        params: { org_id, key_id: apiKey.id },
        body: { content: isOwn ? wanted : null },
      }),
    [contentKey(org_id), ["sets", org_id]],
    onClose,
  )
  return (
    <FormDialog
      title={title(apiKey)}
      submit={t("Save")}
      write={write}
      onClose={onClose}
      ready={!isOwn || wanted !== null}
    >
      <Segments
        label={t("Whose settings")}
        value={isOwn ? "own" : "organization"}
        options={[
          { value: "organization", label: t("As the organization") },
          { value: "own", label: t("Its own") },
        ]}
        onChange={(value) => setOwn(value === "own")}
      />
      {isOwn ? (
        <KeptFields draft={kept} daysMax={daysMax} onChange={setKept} />
      ) : (
        <Notice tone="plain">
          {inherited}. {t("Owners change it under Settings.")}
        </Notice>
      )}
    </FormDialog>
  )
}
