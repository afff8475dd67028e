/** Who did what, newest first, with what changed. */
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { AuditLogEntry } from "../../../src/contract/platform/audit-log.ts"
import { api } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { TextField } from "../parts/field.tsx"
import { ago, moment } from "../parts/format.ts"
import { MoreButton, usePages } from "../parts/more.tsx"
import { Badge, Empty, Loaded, Notice, Page } from "../parts/page.tsx"
import { useIsOwner, useOrganization } from "../session.ts"

const route = getRouteApi("/o/$orgId/audit")
const filterNames = ["action", "actor", "resource"] as const

export function AuditPage(): ReactNode {
  const owner = useIsOwner()
  return (
    <Page
      title="Audit log"
      about="Every change, with who made it and from where. Each entry is chained to the one before, so none can be taken out unnoticed."
    >
      {owner ? <Entries /> : <Notice tone="info">Owners read the audit log.</Notice>}
    </Page>
  )
}

function Entries(): ReactNode {
  const { id: org_id } = useOrganization()
  const search = route.useSearch()
  const navigate = useNavigate()
  const filters = Object.fromEntries(
    filterNames.flatMap((name) =>
      typeof search[name] === "string" && search[name] ? [[name, search[name]]] : [],
    ),
  ) as Partial<Record<(typeof filterNames)[number], string>>
  const entries = usePages(
    ["audit", org_id, filters],
    async (page) => await api.listAuditLog({ params: { org_id }, query: { ...page, ...filters } }),
  )
  const filter = (next: typeof filters): void =>
    void navigate({ to: "/o/$orgId/audit", params: { orgId: org_id }, search: next })
  return (
    <>
      <Filters key={JSON.stringify(filters)} filters={filters} onChange={filter} />
      <Loaded query={entries} what="the audit log">
        {(rows) =>
          rows.length === 0 ? (
            <div className="panel">
              <Empty icon="list" title="Nothing here">
                {Object.keys(filters).length > 0
                  ? "No entry matches these filters."
                  : "Changes will be listed here."}
              </Empty>
            </div>
          ) : (
            <ol className="panel divide-line divide-y" aria-label="Audit log">
              {rows.map((entry) => (
                <Entry key={entry.id} entry={entry} onFilter={(more) => filter({ ...filters, ...more })} />
              ))}
            </ol>
          )
        }
      </Loaded>
      <MoreButton query={entries} />
    </>
  )
}

type FilterValues = Partial<Record<(typeof filterNames)[number], string>>

function Filters({
  filters,
  onChange,
}: {
  filters: FilterValues
  onChange: (filters: FilterValues) => void
}): ReactNode {
  const [values, setValues] = useState(filters)
  return (
    <form
      className="grid items-end gap-3 sm:flex sm:flex-wrap"
      onSubmit={(event) => {
        event.preventDefault()
        onChange(Object.fromEntries(Object.entries(values).filter(([, value]) => value)))
      }}
    >
      <TextField
        label="Action"
        placeholder="api_key.create"
        value={values.action ?? ""}
        onChange={(event) => setValues({ ...values, action: event.target.value })}
      />
      <TextField
        label="Who"
        placeholder="usr_…"
        value={values.actor ?? ""}
        onChange={(event) => setValues({ ...values, actor: event.target.value })}
      />
      <TextField
        label="Resource"
        placeholder="api_key or an id"
        value={values.resource ?? ""}
        onChange={(event) => setValues({ ...values, resource: event.target.value })}
      />
      <Button type="submit" icon="filter">
        Filter
      </Button>
      {Object.keys(filters).length > 0 ? (
        <Button kind="bare" onClick={() => onChange({})}>
          Clear
        </Button>
      ) : null}
    </form>
  )
}

function Entry({
  entry,
  onFilter,
}: {
  entry: AuditLogEntry
  onFilter: (filters: FilterValues) => void
}): ReactNode {
  const who = entry.actor.name ?? entry.actor.id ?? "the system"
  const { id: actorId } = entry.actor
  return (
    <li>
      <details className="group">
        <summary className="hover:bg-sunken/50 flex list-none flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5 text-sm">
          <span className="md:w-60 md:shrink-0">
            <Badge tone={toneOf(entry.action)}>{entry.action}</Badge>
          </span>
          <span className="min-w-0 flex-1 basis-60 wrap-anywhere">
            <strong className="font-medium">{who}</strong>
            <span className="text-soft"> on {entry.resource.type.replaceAll("_", " ")} </span>
            <span className="text-soft font-mono text-xs">{entry.resource.id}</span>
          </span>
          <time dateTime={entry.at} title={moment(entry.at)} className="text-soft text-xs">
            {ago(entry.at)}
          </time>
        </summary>
        <div className="bg-sunken/60 flex flex-col gap-3 px-4 py-3 text-xs">
          <p className="text-soft">
            {moment(entry.at)} · {entry.actor.kind} · {entry.ip ?? "no address"} ·{" "}
            {entry.user_agent ?? "no browser"}
          </p>
          <div className="grid grid-cols-1 gap-3 md:grid-cols-2">
            <Json title="Before" value={entry.before} />
            <Json title="After" value={entry.after} />
          </div>
          <p className="flex flex-wrap gap-2">
            <Button small kind="bare" icon="filter" onClick={() => onFilter({ action: entry.action })}>
              This action
            </Button>
            {actorId ? (
              <Button small kind="bare" icon="filter" onClick={() => onFilter({ actor: actorId })}>
                By {who}
              </Button>
            ) : null}
          </p>
          <p className="text-soft font-mono break-all">{entry.hash}</p>
        </div>
      </details>
    </li>
  )
}

function toneOf(action: string): "bad" | "good" | "plain" {
  if (/delete|remove|revoke/.test(action)) return "bad"
  return /create|accept|grant/.test(action) ? "good" : "plain"
}

function Json({ title, value }: { title: string; value: unknown }): ReactNode {
  return (
    <div className="min-w-0">
      <p className="label mb-1">{title}</p>
      <pre
        className="bg-panel border-line overflow-x-auto rounded-md border p-2 font-mono"
        tabIndex={0}
        aria-label={title}
      >
        {value === null || value === undefined ? "nothing" : JSON.stringify(value, null, 2)}
      </pre>
    </div>
  )
}
