/** Alerts: rules with their state, webhooks with their deliveries, and what was raised lately. */
import { useQuery } from "@tanstack/react-query"
import { useNavigate, useSearch } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { api } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { usePages } from "../parts/more.tsx"
import { Page } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { useOpenRequest } from "../shell/open-request.ts"
import { refreshMs, rulesKey, webhooksKey } from "./alert-queries.ts"
import { Deliveries } from "./deliveries.tsx"
import { RaisedAlerts } from "./raised-alerts.tsx"
import { RuleDialog } from "./rule-dialog.tsx"
import { Rules } from "./rules.tsx"
import { Webhooks } from "./webhooks.tsx"
import { t } from "../i18n/translate.ts"

export function AlertsPage(): ReactNode {
  const { id: org_id } = useOrganization()
  const { webhook: webhookId, set } = useSearch({ strict: false }) as { webhook?: string; set?: string }
  const [creating, setCreating] = useState<{ readonly setId: string | null } | null>(null)
  useOpenRequest(() => setCreating({ setId: set ?? null }))
  const rules = usePages(
    rulesKey(org_id),
    async (query) => await api.listAlertRules({ params: { org_id }, query }),
    { refetchInterval: refreshMs },
  )
  const webhooks = useQuery({
    queryKey: webhooksKey(org_id),
    refetchInterval: refreshMs,
    queryFn: async () => (await api.listWebhooks({ params: { org_id } })).data,
  })
  const shown = webhooks.data?.find(({ id }) => id === webhookId)
  const navigate = useNavigate()
  const show = (id: string | null): void =>
    void navigate({ to: ".", search: id === null ? {} : { webhook: id }, resetScroll: false })
  const create = (
    <Button kind="loud" icon="plus" onClick={() => setCreating({ setId: null })}>
      {t("Create rule")}
    </Button>
  )
  return (
    <Page
      title={t("Alerts")}
      about={t(
        "Rules are evaluated every 15 seconds. When one starts or stops firing, its webhooks are called and its e-mails are sent.",
      )}
      actions={rules.data?.length ? create : null}
    >
      <Rules query={rules} webhooks={webhooks.data ?? []} create={create} />
      <Webhooks query={webhooks} shownId={shown?.id ?? null} onShow={show} />
      {shown ? <Deliveries key={shown.id} webhook={shown} onClose={() => show(null)} /> : null}
      <RaisedAlerts webhooks={webhooks.data ?? []} />
      {creating ? (
        <RuleDialog
          rule={null}
          setId={creating.setId}
          webhooks={webhooks.data ?? []}
          onClose={() => setCreating(null)}
        />
      ) : null}
    </Page>
  )
}
