/** Who did what, newest first, with what changed. */
import { useQuery } from "@tanstack/react-query"
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { AuditLogEntry, AuditLogFilters } from "../../../src/contract/platform/audit-log.ts"
import { api } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { SelectField, TextField } from "../parts/field.tsx"
import { ago, moment } from "../parts/format.ts"
import { Icon } from "../parts/icon.tsx"
import { MoreButton, usePages } from "../parts/more.tsx"
import { Badge, Empty, Loaded, Notice, Page } from "../parts/page.tsx"
import { useNames } from "../requests/use-names.ts"
import { useIsOwner, useOrganization } from "../session.ts"
import { Differences } from "./audit-difference.tsx"
import { actionWords, actorName, kindWords, subjectOf, toneOf } from "./audit-words.ts"
import { t } from "../i18n/translate.ts"

const route = getRouteApi("/o/$orgId/audit")
const filterNames = ["action", "actor", "resource", "from", "to"] as const
type FilterValues = Partial<Record<(typeof filterNames)[number], string>>

export function AuditPage(): ReactNode {
  const owner = useIsOwner()
  return (
    <Page
      title={t("Audit log")}
      about={t(
        "Every change, who made it, and from where. Entries are chained by hashes, so a removed or edited entry is detected.",
      )}
      actions={owner ? <ExportLink /> : null}
    >
      {owner ? <Entries /> : <Notice tone="info">{t("Only owners can read the audit log.")}</Notice>}
    </Page>
  )
}

function useFilters(): [FilterValues, (filters: FilterValues) => void] {
  const { id: orgId } = useOrganization()
  const search = route.useSearch()
  const navigate = useNavigate()
  const given = filterNames.flatMap((name) =>
    typeof search[name] === "string" && search[name] ? [[name, search[name]] as const] : [],
  )
  const change = (next: FilterValues): void => {
    const kept = Object.entries(next).filter(([, value]) => value)
    void navigate({ to: "/o/$orgId/audit", params: { orgId }, search: Object.fromEntries(kept) })
  }
  return [Object.fromEntries(given), change]
}

function startOf(day: string, daysLater: number): string {
  const start = new Date(`${day}T00:00`)
  start.setDate(start.getDate() + daysLater)
  return start.toISOString()
}

/** The days of the fields as the API takes times: the last day is included whole. */
function queryOf({ from, to, ...rest }: FilterValues): FilterValues {
  return { ...rest, ...(from ? { from: startOf(from, 0) } : {}), ...(to ? { to: startOf(to, 1) } : {}) }
}

/** A link, not a request: the browser saves the answer as a file. */
function ExportLink(): ReactNode {
  const { id } = useOrganization()
  const [filters] = useFilters()
  const query = new URLSearchParams(queryOf(filters)).toString()
  return (
    <a
      href={`/v1/organizations/${id}/audit_log/export${query ? `?${query}` : ""}`}
      download="audit-log.csv"
      className="bg-panel text-ink border-strong hover:bg-sunken inline-flex h-9 items-center gap-1.5 rounded-md border px-3 text-sm font-medium"
    >
      <Icon name="file" /> {t("Export CSV")}
    </a>
  )
}

function Entries(): ReactNode {
  const { id: org_id } = useOrganization()
  const [filters, change] = useFilters()
  const entries = usePages(
    ["audit", org_id, filters],
    async (page) => await api.listAuditLog({ params: { org_id }, query: { ...page, ...queryOf(filters) } }),
  )
  const filtered = Object.keys(filters).length > 0
  const { keys, sets } = useNames()
  const nameOf = ({ id }: AuditLogEntry["resource"]): string | null =>
    [...keys, ...sets].find((one) => one.id === id)?.name ?? null
  return (
    <>
      <Filters filters={filters} onChange={change} />
      <Loaded query={entries} label={t("Loading the audit log")}>
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="list" title={t("No entries")}>
                {filtered ? t("No entry matches these filters.") : t("Changes are listed here.")}
              </Empty>
            </div>
          ) : (
            <ol className="panel divide-line divide-y" aria-label={t("Audit log")}>
              {rows.map((entry) => (
                <Entry
                  key={entry.id}
                  entry={entry}
                  nameOf={nameOf}
                  onFilter={(more) => change({ ...filters, ...more })}
                />
              ))}
            </ol>
          )
        }
      </Loaded>
      <MoreButton query={entries} />
    </>
  )
}

const nothingKnown: AuditLogFilters = { actors: [], actions: [], resource_types: [] }

function Filters({
  filters,
  onChange,
}: {
  filters: FilterValues
  onChange: (filters: FilterValues) => void
}): ReactNode {
  const { id: org_id } = useOrganization()
  const { data: known = nothingKnown } = useQuery({
    queryKey: ["audit-filters", org_id],
    queryFn: async () => await api.listAuditLogFilters({ params: { org_id } }),
  })
  const set = (name: keyof FilterValues) => (event: { target: { value: string } }) =>
    onChange({ ...filters, [name]: event.target.value })
  const actors = known.actors.flatMap((actor) =>
    actor.id === null ? [] : [{ value: actor.id, label: actorName(actor) }],
  )
  const actions = known.actions.map((value) => ({ value, label: actionWords(value) }))
  const kinds = known.resource_types.map((value) => ({ value, label: kindWords(value) }))
  return (
    <div
      role="search"
      aria-label={t("Audit log filters")}
      className="grid grid-cols-2 items-end gap-3 max-sm:[&>:first-child]:col-span-2 sm:flex sm:flex-wrap"
    >
      <SelectField
        label={t("Who")}
        value={filters.actor ?? ""}
        options={withAny(t("Anyone"), actors, filters.actor)}
        onChange={set("actor")}
        className="sm:max-w-52"
      />
      <SelectField
        label={t("Action")}
        value={filters.action ?? ""}
        options={withAny(t("Any action"), actions, filters.action)}
        onChange={set("action")}
        className="sm:max-w-52"
      />
      <SelectField
        label={t("Resource")}
        value={filters.resource ?? ""}
        options={withAny(t("Any resource"), kinds, filters.resource)}
        onChange={set("resource")}
        className="sm:max-w-52"
      />
      <TextField
        label={t("From")}
        type="date"
        max={filters.to}
        value={filters.from ?? ""}
        onChange={set("from")}
      />
      <TextField
        label={t("To")}
        type="date"
        min={filters.from}
        value={filters.to ?? ""}
        onChange={set("to")}
      />
      {Object.keys(filters).length > 0 ? (
        <Button kind="bare" onClick={() => onChange({})}>
          {t("Clear filters")}
        </Button>
      ) : null}
    </div>
  )
}

interface Choice {
  readonly value: string
  readonly label: string
}

/** An address may name what the list does not hold, such as the id of one resource. */
function withAny(any: string, options: readonly Choice[], chosen: string | undefined): readonly Choice[] {
  const unknown = chosen && !options.some(({ value }) => value === chosen)
  return [
    { value: "", label: any },
    ...(unknown ? [{ value: chosen, label: chosen }] : []),
    ...options.toSorted((a, b) => a.label.localeCompare(b.label)),
  ]
}

function Entry({
  entry,
  nameOf,
  onFilter,
}: {
  entry: AuditLogEntry
  /** What a resource is called now, for entries that do not say it. */
  nameOf: (resource: AuditLogEntry["resource"]) => string | null
  onFilter: (filters: FilterValues) => void
}): ReactNode {
  const who = actorName(entry.actor)
  const subject = subjectOf(entry) ?? nameOf(entry.resource)
  const { id: actorId } = entry.actor
  const { id: resourceId } = entry.resource
  return (
    <li>
      <details className="group">
        <summary className="hover:bg-sunken/50 flex list-none flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5 text-sm">
          <Icon name="down" className="text-soft size-3.5 shrink-0 -rotate-90 group-open:rotate-0" />
          <span className="md:w-52 md:shrink-0">
            <Badge tone={toneOf(entry.action)}>{actionWords(entry.action)}</Badge>
          </span>
          <time
            dateTime={entry.at}
            title={moment(entry.at)}
            className="text-soft ms-auto text-xs md:order-last"
          >
            {ago(entry.at)}
          </time>
          <span className="min-w-0 flex-1 wrap-anywhere max-md:basis-full">
            {subject && subject !== who ? (
              <>
                <strong className="font-medium">{subject}</strong>
                <span className="text-soft"> {t("by {who}", { who })}</span>
              </>
            ) : (
              <span className="text-soft">{t("By {who}", { who })}</span>
            )}
          </span>
        </summary>
        <div className="bg-sunken/60 flex flex-col gap-3 px-4 py-3 text-xs">
          <Facts entry={entry} />
          <Differences before={entry.before} after={entry.after} />
          <p className="-ms-2 flex flex-wrap gap-x-2">
            <Button small kind="bare" icon="filter" onClick={() => onFilter({ action: entry.action })}>
              {t("Same action")}
            </Button>
            {actorId ? (
              <Button small kind="bare" icon="filter" onClick={() => onFilter({ actor: actorId })}>
                {t("By {who}", { who })}
              </Button>
            ) : null}
            {resourceId ? (
              <Button small kind="bare" icon="filter" onClick={() => onFilter({ resource: resourceId })}>
                {t("Same resource")}
              </Button>
            ) : null}
          </p>
        </div>
      </details>
    </li>
  )
}

function Facts({ entry }: { entry: AuditLogEntry }): ReactNode {
  const { at, actor, action, resource, ip, user_agent, hash } = entry
  const facts: readonly (readonly [string, string | null, "mono"?])[] = [
    [t("Time"), moment(at)],
    [t("Actor"), `${actorName(actor)} (${actor.kind.replaceAll("_", " ")})`],
    [t("Address"), ip],
    [t("Client"), user_agent],
    [t("Action"), action, "mono"],
    [t("Resource"), resource.id ?? resource.type, "mono"],
    [t("Hash"), hash, "mono"],
  ]
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1">
      {facts
        .filter(([, value]) => value !== null)
        .map(([name, value, look]) => (
          <div key={name} className="contents">
            <dt className="text-soft">{name}</dt>
            <dd className={look ? "font-mono break-all" : "wrap-anywhere"}>{value}</dd>
          </div>
        ))}
    </dl>
  )
}
