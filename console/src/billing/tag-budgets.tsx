/** Budgets and limits of tags: what may be spent on requests with `key=value` and how many may come, set by owners. */
import { useQuery } from "@tanstack/react-query"
import { type ReactNode, useState } from "react"
import type { TagBudget } from "../../../src/contract/platform/tag-budgets.ts"
import { api, useWrite } from "../api.ts"
import {
  type BudgetDraft,
  BudgetFields,
  type RateDraft,
  RateFields,
  budgetDraftOf,
  budgetLines,
  budgetsOfDraft,
  isUnlimited,
  noLimits,
  rateDraftOf,
  ratesOfDraft,
} from "../pages/key-limit-fields.tsx"
import { Button } from "../parts/button.tsx"
import { ConfirmDialog, FormDialog } from "../parts/dialog.tsx"
import { TextField } from "../parts/field.tsx"
import { count } from "../parts/format.ts"
import { Badge, Loaded, Panel } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

type Open =
  | { readonly kind: "set"; readonly tag: TagBudget | null }
  | { readonly kind: "remove"; readonly tag: TagBudget }

const nameOf = ({ key, value }: TagBudget): string => `${key}=${value}`

export function TagBudgetsPanel({ owner }: { owner: boolean }): ReactNode {
  const { id: org_id } = useOrganization()
  const [open, setOpen] = useState<Open | null>(null)
  const close = (): void => setOpen(null)
  const queryKey = ["tag-budgets", org_id]
  const query = useQuery({
    queryKey,
    queryFn: async () => await api.listTagBudgets({ params: { org_id } }),
  })
  return (
    <Panel
      title={t("Budgets and limits of tags")}
      actions={
        owner ? (
          <Button small icon="plus" onClick={() => setOpen({ kind: "set", tag: null })}>
            {t("Add limit")}
          </Button>
        ) : undefined
      }
    >
      <p className="text-soft mb-3 text-sm">
        <T
          text="Requests carry tags in a header: <code>x-umpire-tags: team=ops</code>. A budget caps what is spent on a tag, or warns of it; a limit caps its requests or tokens a minute. Requests without the tag do not count."
          code={(children) => <code className="whitespace-nowrap">{children}</code>}
        />
      </p>
      <Loaded query={query} label={t("Loading budgets and limits of tags")}>
        {(tags) =>
          tags.length === 0 ? (
            <p className="text-soft text-sm">{t("No tag has a budget or limit.")}</p>
          ) : (
            <ul className="divide-line divide-y text-sm" aria-label={t("Budgets and limits of tags")}>
              {tags.map((tag) => (
                <TagRow key={nameOf(tag)} tag={tag} owner={owner} onOpen={setOpen} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {open?.kind === "set" ? <SetBudget tag={open.tag} queryKey={queryKey} onClose={close} /> : null}
      {open?.kind === "remove" ? (
        <ConfirmDialog
          title={t("Remove the limits of {nameOf}?", { nameOf: nameOf(open.tag) })}
          submit={t("Remove")}
          act={async () => {
            const { key, value } = open.tag
            const body = { key, value, budgets: [], rate_limit: null, tokens_per_minute: null }
            await api.putTagBudget({ params: { org_id }, body })
          }}
          refreshes={[queryKey]}
          onClose={close}
        >
          {t("Nothing limits what is spent on this tag, or how many requests it has, from then on.")}
        </ConfirmDialog>
      ) : null}
    </Panel>
  )
}

function rateLines({ rate_limit, tokens_per_minute }: TagBudget): string[] {
  return [
    ...(rate_limit === null
      ? []
      : [
          t("{requestsPerMinute} requests a minute, {burst} at once", {
            requestsPerMinute: count(rate_limit.requests_per_minute),
            burst: count(rate_limit.burst),
          }),
        ]),
    ...(tokens_per_minute === null
      ? []
      : [t("{tokensPerMinute} tokens a minute", { tokensPerMinute: count(tokens_per_minute) })]),
  ]
}

function TagRow({
  tag,
  owner,
  onOpen,
}: {
  tag: TagBudget
  owner: boolean
  onOpen: (open: Open) => void
}): ReactNode {
  return (
    <li className="flex items-start justify-between gap-3 py-3 last:pb-0">
      <span className="min-w-0">
        <span className="mb-0.5 block font-mono text-xs font-semibold wrap-anywhere">{nameOf(tag)}</span>
        {budgetLines(tag).map(({ text, isBlocked }) => (
          <span key={text} className="block">
            {text} {isBlocked ? <Badge tone="bad">{t("Blocked")}</Badge> : null}
          </span>
        ))}
        {rateLines(tag).map((text) => (
          <span key={text} className="block">
            {text}
          </span>
        ))}
      </span>
      {owner ? (
        <span className="flex shrink-0 gap-2">
          <Button
            small
            onClick={() => onOpen({ kind: "set", tag })}
            aria-label={t("Edit {nameOf}", { nameOf: nameOf(tag) })}
          >
            {t("Edit")}
          </Button>
          <Button
            small
            kind="bad"
            onClick={() => onOpen({ kind: "remove", tag })}
            aria-label={t("Remove {nameOf}", { nameOf: nameOf(tag) })}
          >
            {t("Remove")}
          </Button>
        </span>
      ) : null}
    </li>
  )
}

function SetBudget({
  tag,
  queryKey,
  onClose,
}: {
  tag: TagBudget | null
  queryKey: readonly string[]
  onClose: () => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const [key, setKey] = useState(tag?.key ?? "")
  const [value, setValue] = useState(tag?.value ?? "")
  const [draft, setDraft] = useState<BudgetDraft>(budgetDraftOf(tag?.budgets ?? []))
  const [rateDraft, setRateDraft] = useState<RateDraft>(tag ? rateDraftOf(tag) : noLimits)
  const write = useWrite(
    async () =>
      await api.putTagBudget({
        params: { org_id },
        body: { key, value, budgets: budgetsOfDraft(draft), ...ratesOfDraft(rateDraft) },
      }),
    [queryKey],
    onClose,
  )
  return (
    <FormDialog
      title={tag ? t("Limits of {nameOf}", { nameOf: nameOf(tag) }) : t("Add a limit")}
      submit={t("Save")}
      write={write}
      ready={!isUnlimited({ ...rateDraft, ...draft })}
      onClose={onClose}
    >
      <div className="grid grid-cols-2 gap-3">
        <TextField
          label={t("Tag")}
          required
          autoFocus={tag === null}
          disabled={tag !== null}
          placeholder="team"
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
        <TextField
          label={t("Value")}
          required
          disabled={tag !== null}
          placeholder="ops"
          value={value}
          onChange={(event) => setValue(event.target.value)}
        />
      </div>
      <BudgetFields draft={draft} onChange={setDraft} />
      <RateFields draft={rateDraft} without={t("No limit")} onChange={setRateDraft} />
    </FormDialog>
  )
}
