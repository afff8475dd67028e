/** The alert rules: what each watches, whether it fires and since when, and who is notified. */
import { Link } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { AlertRule } from "../../../src/contract/alerts/rules.ts"
import type { Webhook } from "../../../src/contract/alerts/webhooks.ts"
import { api, useWrite } from "../api.ts"
import { ConfirmDialog } from "../parts/dialog.tsx"
import { ErrorNotice } from "../parts/error-notice.tsx"
import { ago, moment } from "../parts/format.ts"
import { ActionsMenu, MenuItem, MenuLine } from "../parts/menu.tsx"
import { MoreButton, type Pages } from "../parts/more.tsx"
import { Badge, Empty, Loaded, type Tone } from "../parts/page.tsx"
import { Table, actionsColumn } from "../parts/table.tsx"
import { useOrganization } from "../session.ts"
import { useShown } from "../shell/open-request.ts"
import { alertsKey, useTargets } from "./alert-queries.ts"
import { RuleDialog } from "./rule-dialog.tsx"
import { ruleSentence, webhookName } from "./rule-words.ts"
import { T } from "../i18n/sentence.tsx"
import { t, tn } from "../i18n/translate.ts"

type Open = { readonly kind: "edit" | "delete"; readonly rule: AlertRule }

export function Rules({
  query: rules,
  webhooks,
  create,
}: {
  query: Pages<AlertRule>
  webhooks: readonly Webhook[]
  /** Where there is no rule yet. */
  create: ReactNode
}): ReactNode {
  const { id: org_id } = useOrganization()
  const [open, setOpen] = useState<Open | null>(null)
  const close = (): void => setOpen(null)
  const enable = useWrite(
    async ({ id, enabled }: AlertRule) =>
      await api.updateAlertRule({ params: { org_id, rule_id: id }, body: { enabled: !enabled } }),
    [alertsKey(org_id)],
  )
  return (
    <section className="flex flex-col gap-3" aria-label={t("Rules")}>
      <h2 className="text-sm font-semibold">{t("Rules")}</h2>
      <ErrorNotice error={enable.error} />
      <Loaded query={rules} label={t("Loading alert rules")}>
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="bell" title={t("No alert rules yet")} action={create}>
                {t(
                  "Get notified when credit runs low, requests fail or slow down, a key is about to expire, or a set’s answers change.",
                )}
              </Empty>
            </div>
          ) : (
            <RuleTable rows={rows} webhooks={webhooks} onOpen={setOpen} onEnable={enable.mutate} />
          )
        }
      </Loaded>
      <MoreButton query={rules} />
      {open?.kind === "edit" ? <RuleDialog rule={open.rule} webhooks={webhooks} onClose={close} /> : null}
      {open?.kind === "delete" ? <DeleteRule rule={open.rule} onClose={close} /> : null}
    </section>
  )
}

function RuleTable({
  rows,
  webhooks,
  onOpen,
  onEnable,
}: {
  rows: readonly AlertRule[]
  webhooks: readonly Webhook[]
  onOpen: (open: Open) => void
  onEnable: (rule: AlertRule) => void
}): ReactNode {
  const { id: orgId } = useOrganization()
  const { names } = useTargets()
  const shown = useShown()
  return (
    <Table
      label={t("Alert rules")}
      rows={rows}
      rowKey={({ id }) => id}
      isMarked={({ id }) => id === shown}
      columns={[
        {
          name: t("Rule"),
          cell: (rule) => (
            <>
              <span className="font-medium">{rule.name}</span>
              <span className="text-soft block max-w-xl text-xs">
                {ruleSentence(rule, names)}
                {rule.managed_by ? (
                  <>
                    {" "}
                    <T
                      text="Set in <a>Billing</a>."
                      a={(children) => (
                        <Link
                          to="/o/$orgId/billing"
                          params={{ orgId }}
                          search={{}}
                          className="text-accent underline"
                        >
                          {children}
                        </Link>
                      )}
                    />
                  </>
                ) : null}
              </span>
            </>
          ),
        },
        { name: t("State"), long: true, cell: (rule) => <State rule={rule} /> },
        { name: t("Notifies"), cell: ({ channels }) => <Channels channels={channels} webhooks={webhooks} /> },
        actionsColumn(true, (rule: AlertRule) => (
          <ActionsMenu of={rule.name}>
            <MenuItem icon="gear" onSelect={() => onOpen({ kind: "edit", rule })}>
              {rule.managed_by ? t("Choose who is notified") : t("Edit")}
            </MenuItem>
            <MenuItem icon={rule.enabled ? "stop" : "play"} onSelect={() => onEnable(rule)}>
              {rule.enabled ? t("Disable") : t("Enable")}
            </MenuItem>
            {rule.managed_by ? null : (
              <>
                <MenuLine />
                <MenuItem icon="trash" danger onSelect={() => onOpen({ kind: "delete", rule })}>
                  {t("Delete")}
                </MenuItem>
              </>
            )}
          </ActionsMenu>
        )),
      ]}
    />
  )
}

const states: Record<AlertRule["state"], { readonly tone: Tone; readonly words: string }> = {
  ok: { tone: "good", words: "OK" },
  firing: { tone: "bad", words: t("Firing") },
  unknown: { tone: "plain", words: t("Nothing to evaluate") },
}

function State({ rule }: { rule: AlertRule }): ReactNode {
  if (!rule.enabled) return <Badge>{t("Disabled")}</Badge>
  if (rule.evaluated_at === null) return <Badge>{t("Not evaluated yet")}</Badge>
  const { tone, words } = states[rule.state]
  return (
    <>
      <Badge tone={tone}>{words}</Badge>
      <span className="text-soft block text-xs" title={moment(rule.state_since)}>
        {rule.detail ? `${rule.detail} ` : ""}
        {t("Changed {stateSince}.", { stateSince: ago(rule.state_since) })}
      </span>
    </>
  )
}

function Channels({
  channels,
  webhooks,
}: {
  channels: AlertRule["channels"]
  webhooks: readonly Webhook[]
}): ReactNode {
  if (channels.length === 0) return <span className="text-soft">{t("No one")}</span>
  const names = channels.map((one) => {
    if (one.type === "email") return one.address
    const webhook = webhooks.find(({ id }) => id === one.webhook_id)
    return webhook ? webhookName(webhook) : t("a webhook")
  })
  const [first, second, ...rest] = names
  return (
    <span title={names.join(", ")} className="block md:min-w-32">
      <span className="block">{first}</span>
      {second ? (
        <span className="text-soft block text-xs">
          {rest.length > 0
            ? tn(rest.length, "{second} and {count} other", "{second} and {count} others", { second })
            : second}
        </span>
      ) : null}
    </span>
  )
}

function DeleteRule({ rule, onClose }: { rule: AlertRule; onClose: () => void }): ReactNode {
  const { id: org_id } = useOrganization()
  return (
    <ConfirmDialog
      title={t("Delete {name}?", { name: rule.name })}
      submit={t("Delete rule")}
      act={async () => await api.deleteAlertRule({ params: { org_id, rule_id: rule.id } })}
      refreshes={[alertsKey(org_id)]}
      onClose={onClose}
    >
      {t("It no longer fires. The alerts that it raised stay listed.")}
    </ConfirmDialog>
  )
}
