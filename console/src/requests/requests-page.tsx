/** Requests: what was asked of the models, one by one, live and filtered; every view has an address. */
import { getRouteApi, useNavigate } from "@tanstack/react-router"
import { type FormEvent, type ReactNode, useEffect, useState } from "react"
import { type Preset, presetNames, presets } from "../analytics/view.ts"
import { ClientError } from "../api.ts"
import { SearchContent } from "../content/search-content.tsx"
import { Button } from "../parts/button.tsx"
import { Segments } from "../parts/field.tsx"
import { moment } from "../parts/format.ts"
import { Icon } from "../parts/icon.tsx"
import { MoreButton } from "../parts/more.tsx"
import { Empty, Loaded, Page } from "../parts/page.tsx"
import { useBrowserStorage, useOrganization, useTabStorage } from "../session.ts"
import { FilterDialog } from "./filter-dialog.tsx"
import { type LogView, chipsOf, emptyView, readLogView, writeLogView } from "./log-view.ts"
import { keepOpened, moveOpened, openedRequest } from "./opened.ts"
import { RequestTable } from "./request-table.tsx"
import { useListKeys } from "./use-list-keys.ts"
import { type Names, useNames } from "./use-names.ts"
import { useRequestLog } from "./use-request-log.ts"
import { ViewsMenu } from "./views-menu.tsx"
import { T } from "../i18n/sentence.tsx"
import { t, tn } from "../i18n/translate.ts"

const route = getRouteApi("/o/$orgId/requests")
const liveEntry = "requests-live"
/** Who has scrolled this far reads. */
const readingPx = 120

export function RequestsPage(): ReactNode {
  const { id: orgId } = useOrganization()
  const navigate = useNavigate()
  const [storage, tab] = [useBrowserStorage(), useTabStorage()]
  const view = readLogView(route.useSearch())
  const names = useNames()
  const [live, setLive] = useState(() => storage.read(liveEntry) !== false)
  const [filtering, setFiltering] = useState(false)
  const [searching, setSearching] = useState(false)
  // Who comes back from a record finds its row marked.
  const [selected, setSelected] = useState(() => openedRequest(tab))
  useEffect(() => moveOpened(tab, null), [tab])
  const log = useRequestLog(orgId, view, {
    live: live && isOpenEnded(view),
    isReading: () => selected !== null || scrollY > readingPx || getSelection()?.type === "Range",
  })
  const rows = log.data ?? []
  const show = (next: LogView): void => {
    setSelected(null)
    void navigate({ to: "/o/$orgId/requests", params: { orgId }, search: writeLogView(next) })
  }
  const remember = (seqId: string): void => {
    setSelected(seqId)
    keepOpened(
      tab,
      seqId,
      rows.map(({ seq_id }) => seq_id),
    )
  }
  const open = (seqId: string): void => {
    remember(seqId)
    void navigate({ to: "/o/$orgId/requests/$seqId", params: { orgId, seqId } })
  }
  const step = (by: number): void => {
    const at = rows.findIndex(({ seq_id }) => seq_id === selected)
    const next = rows[at < 0 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1)]
    if (next) setSelected(next.seq_id)
  }
  useListKeys({
    j: () => step(1),
    k: () => step(-1),
    Enter: () => selected !== null && open(selected),
    Escape: () => setSelected(null),
  })
  if (log.error instanceof ClientError && log.error.status === 503) return <NotConfigured />
  return (
    <Page
      title={t("Requests")}
      actions={
        <div className="flex flex-wrap items-center gap-2">
          <div className="flex">
            <RangeControl view={view} onChange={show} />
          </div>
          <LiveButton
            live={live}
            possible={isOpenEnded(view)}
            onChange={(next) => {
              setLive(next)
              storage.write(liveEntry, next)
            }}
          />
          {live && isOpenEnded(view) ? null : (
            <Button icon="turn" aria-label={t("Refresh")} title={t("Refresh")} onClick={log.reload} />
          )}
        </div>
      }
    >
      <div className="flex flex-wrap items-center gap-2">
        <Find view={view} onShow={show} />
        <Button icon="filter" onClick={() => setFiltering(true)}>
          {t("Filter")}
        </Button>
        <Button icon="search" onClick={() => setSearching(true)}>
          {t("Search texts")}
        </Button>
        <ViewsMenu view={view} onShow={show} />
        <Chips view={view} names={names} onShow={show} />
      </div>
      {log.fresh > 0 ? (
        <NewRequests
          many={log.fresh}
          onShow={() => {
            setSelected(null)
            log.take()
            scrollTo({ top: 0 })
          }}
        />
      ) : null}
      <Loaded query={log} label={t("Loading requests")}>
        {(shown) =>
          shown.length === 0 ? (
            <Nothing view={view} onShow={show} />
          ) : (
            <RequestTable rows={shown} names={names} selected={selected} onOpen={remember} onRow={open} />
          )
        }
      </Loaded>
      <MoreButton query={log} />
      {rows.length > 0 ? <KeyHints /> : null}
      {searching ? <SearchContent onClose={() => setSearching(false)} /> : null}
      {filtering ? (
        <FilterDialog
          view={view}
          rows={rows}
          names={names}
          onApply={show}
          onClose={() => setFiltering(false)}
        />
      ) : null}
    </Page>
  )
}

/** Only a view that reaches into the future can be live. */
const isOpenEnded = ({ range }: LogView): boolean => typeof range === "string"

function NotConfigured(): ReactNode {
  return (
    <Page title={t("Requests")}>
      <div className="panel">
        <Empty icon="inbox" title={t("Analytics is not configured")}>
          <T
            text="This installation keeps no events. Its operator can set <code>UMPIRE_ANALYTICS_EMBEDDED=true</code> or <code2>UMPIRE_CLICKHOUSE_URL</code2>. Everything else works without it."
            code={(children) => <code>{children}</code>}
            code2={(children) => <code>{children}</code>}
          />
        </Empty>
      </div>
    </Page>
  )
}

const rangeOptions = [
  ...(Object.keys(presets) as Preset[]).map((value) => ({ value, label: presetNames[value] })),
  { value: "all" as const, label: t("All") },
]

function RangeControl({ view, onChange }: { view: LogView; onChange: (view: LogView) => void }): ReactNode {
  const { range } = view
  if (typeof range === "string")
    return (
      <Segments
        label={t("Range")}
        value={range}
        options={rangeOptions}
        onChange={(value) => onChange({ ...view, range: value })}
      />
    )
  return (
    <span className="number flex flex-wrap items-center gap-2 text-xs">
      {t("{startMs} to {endMs}", { startMs: moment(range.startMs), endMs: moment(range.endMs) })}
      <Button small icon="turn" onClick={() => onChange({ ...view, range: emptyView.range })}>
        {t("Last day")}
      </Button>
    </span>
  )
}

function LiveButton({
  live,
  possible,
  onChange,
}: {
  live: boolean
  possible: boolean
  onChange: (live: boolean) => void
}): ReactNode {
  const isOn = live && possible
  return (
    <Button
      aria-pressed={isOn}
      disabled={!possible}
      title={possible ? t("New requests appear by themselves") : t("This range lies in the past")}
      onClick={() => onChange(!live)}
    >
      <span
        aria-hidden="true"
        className={`size-2 rounded-full ${isOn ? "bg-bar animate-pulse" : "bg-bar-rest"}`}
      />
      {t("Live")}
    </Button>
  )
}

/** A sequence id opens its record; anything else is taken for a request id. */
function Find({ view, onShow }: { view: LogView; onShow: (view: LogView) => void }): ReactNode {
  const { id: orgId } = useOrganization()
  const navigate = useNavigate()
  const [text, setText] = useState("")
  const find = (event: FormEvent): void => {
    event.preventDefault()
    const typed = text.trim()
    if (typed === "") return
    setText("")
    if (typed.startsWith("seq_"))
      void navigate({ to: "/o/$orgId/requests/$seqId", params: { orgId, seqId: typed } })
    else onShow({ ...view, range: "all", filters: { ...view.filters, request_id: typed } })
  }
  return (
    <form
      role="search"
      aria-label={t("Find a request")}
      className="relative max-sm:w-full sm:w-64"
      onSubmit={find}
    >
      <Icon name="search" className="text-soft absolute top-2.5 start-2.5 size-4" />
      <input
        aria-label={t("Sequence id or request id")}
        placeholder={t("seq_… or request id")}
        spellCheck={false}
        className="control ps-8"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
    </form>
  )
}

function Chips({
  view,
  names,
  onShow,
}: {
  view: LogView
  names: Names
  onShow: (view: LogView) => void
}): ReactNode {
  const chips = chipsOf(view, names.of)
  if (chips.length === 0) return null
  return (
    <ul className="flex flex-wrap gap-2" aria-label={t("Filters")}>
      {chips.map(({ words, without }) => (
        <li
          key={words}
          className="bg-accent-wash text-accent flex min-w-0 items-center gap-1 rounded-full py-0.5 pe-1 ps-3 text-xs wrap-anywhere"
        >
          {words}
          <button
            type="button"
            aria-label={t("Remove the filter {words}", { words })}
            className="hover:bg-panel grid size-5 shrink-0 place-items-center rounded-full"
            onClick={() => onShow(without)}
          >
            ×
          </button>
        </li>
      ))}
      {chips.length > 1 ? (
        <li>
          <Button kind="bare" small onClick={() => onShow({ ...emptyView, range: view.range })}>
            {t("Clear all")}
          </Button>
        </li>
      ) : null}
    </ul>
  )
}

function NewRequests({ many, onShow }: { many: number; onShow: () => void }): ReactNode {
  return (
    <div role="status" className="sticky top-3 z-10 -my-1 flex justify-center">
      <Button small icon="up" className="shadow-lift rounded-full" onClick={onShow}>
        {tn(many, "{count} new request", "{count} new requests")}
      </Button>
    </div>
  )
}

function Nothing({ view, onShow }: { view: LogView; onShow: (view: LogView) => void }): ReactNode {
  const isFiltered = chipsOf(view, (_, value) => value).length > 0
  return (
    <div className="panel">
      <Empty
        icon="inbox"
        title={isFiltered ? t("No request matches") : t("No requests in this range")}
        action={
          isFiltered || view.range !== "all" ? (
            <div className="flex flex-wrap justify-center gap-2">
              {isFiltered ? (
                <Button onClick={() => onShow({ ...emptyView, range: view.range })}>
                  {t("Clear filters")}
                </Button>
              ) : null}
              {view.range === "all" ? null : (
                <Button onClick={() => onShow({ ...view, range: "all" })}>{t("Show all times")}</Button>
              )}
            </div>
          ) : null
        }
      >
        {isFiltered
          ? t("Remove a filter, or choose a longer range.")
          : t("Every request to the models appears here within seconds, whoever made it.")}
      </Empty>
    </div>
  )
}

function KeyHints(): ReactNode {
  return (
    <p className="text-soft text-xs max-md:hidden">
      <T
        text="{j} {k} choose a row, {enter} opens it, {escape} lets go."
        j={<Key>j</Key>}
        k={<Key>k</Key>}
        enter={<Key>Enter</Key>}
        escape={<Key>Esc</Key>}
      />
    </p>
  )
}

const Key = ({ children }: { children: string }): ReactNode => (
  <kbd className="border-line bg-panel rounded border px-1 font-sans text-[11px]">{children}</kbd>
)
