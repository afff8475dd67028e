/** One question set: its questions, versions, examples, what they teach it, and how it is asked. */
import { useQuery } from "@tanstack/react-query"
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { QuestionSet } from "../../../src/contract/question-sets/sets.ts"
import { ClientError, api, useWrite } from "../api.ts"
import { ConfirmDialog, FormDialog } from "../parts/dialog.tsx"
import { AreaField, TextField } from "../parts/field.tsx"
import { count } from "../parts/format.ts"
import { ActionsMenu, MenuItem, MenuLine } from "../parts/menu.tsx"
import { Badge, Empty, Loaded, Page, useTitle } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { CasesTab } from "./cases-tab.tsx"
import { ExamplesTab } from "./examples-tab.tsx"
import { MonitoringTab } from "./monitoring-tab.tsx"
import { QuestionsTab } from "./questions-tab.tsx"
import { ReviewTab } from "./review-tab.tsx"
import { whatIsWrongWithName } from "./set-draft.ts"
import { type SetAddress, setQuery, setsKey } from "./set-query.ts"
import { type SetTab, readSetSearch, setTabs } from "./set-tabs.ts"
import { ShadowTab } from "./shadow-tab.tsx"
import { TeachTab } from "./teach-tab.tsx"
import { ThresholdTab } from "./threshold-tab.tsx"
import { TryTab } from "./try-tab.tsx"
import { UseTab } from "./use-tab.tsx"
import { type SetEditor, useSetEditor } from "./use-set-editor.ts"
import { VersionsTab } from "./versions-tab.tsx"
import { t } from "../i18n/translate.ts"

export function SetPage(): ReactNode {
  const { id: org_id } = useOrganization()
  const { setName = "" } = useParams({ strict: false })
  useTitle(setName)
  const query = useQuery(setQuery(org_id, setName))
  if (query.error instanceof ClientError && query.error.status === 404) return <NoSuchSet name={setName} />
  return (
    <div className="page gap-5">
      <Loaded query={query} label={t("Loading the question set")}>
        {(set) => <SetView key={set.id} set={set} />}
      </Loaded>
    </div>
  )
}

function NoSuchSet({ name }: { name: string }): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <Page title={name}>
      <div className="panel">
        <Empty
          icon="search"
          title={t("No such question set")}
          action={
            <Link
              to="/o/$orgId/sets"
              params={{ orgId }}
              search={{}}
              className="text-accent text-sm underline"
            >
              {t("All question sets")}
            </Link>
          }
        >
          {t("It may have another name now, or it was deleted.")}
        </Empty>
      </div>
    </Page>
  )
}

function SetView({ set }: { set: QuestionSet }): ReactNode {
  const { id: org_id } = useOrganization()
  const { tab = "questions" } = readSetSearch(useSearch({ strict: false }))
  // Here, so that what is written stays while another tab is looked at.
  const editor = useSetEditor(set)
  return (
    <>
      <SetHeader set={set} />
      <Tabs set={set} current={tab} unsaved={editor.changed} />
      <TabContent tab={tab} set={set} editor={editor} at={{ org_id, set_id: set.id }} />
    </>
  )
}

function TabContent({
  tab,
  set,
  editor,
  at,
}: {
  tab: SetTab
  set: QuestionSet
  editor: SetEditor
  at: SetAddress
}): ReactNode {
  switch (tab) {
    case "try":
      return <TryTab set={set} at={at} />
    case "questions":
      return <QuestionsTab set={set} editor={editor} />
    case "versions":
      return <VersionsTab set={set} at={at} />
    case "examples":
      return <ExamplesTab set={set} at={at} />
    case "teach":
      return <TeachTab set={set} at={at} />
    case "threshold":
      return <ThresholdTab set={set} at={at} editor={editor} />
    case "cases":
      return <CasesTab set={set} at={at} />
    case "shadow":
      return <ShadowTab set={set} at={at} />
    case "monitoring":
      return <MonitoringTab set={set} at={at} />
    case "review":
      return <ReviewTab set={set} at={at} />
    case "use":
      return <UseTab set={set} />
  }
}

function SetHeader({ set }: { set: QuestionSet }): ReactNode {
  const { id: orgId } = useOrganization()
  const [open, setOpen] = useState<"edit" | "delete" | null>(null)
  const close = (): void => setOpen(null)
  return (
    <header className="flex items-start justify-between gap-4">
      <div className="min-w-0">
        <p className="text-soft text-xs">
          <Link to="/o/$orgId/sets" params={{ orgId }} search={{}} className="hover:underline">
            {t("Question sets")}
          </Link>
        </p>
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <h1 className="text-xl font-semibold tracking-tight wrap-anywhere">{set.name}</h1>
          <Badge>{t("Latest: version {latestVersion}", { latestVersion: set.latest_version })}</Badge>
          {set.production_version === null ? (
            <Badge tone="warn">{t("Not published")}</Badge>
          ) : (
            <Badge tone="good">
              {t("Production: version {productionVersion}", { productionVersion: set.production_version })}
            </Badge>
          )}
        </div>
        {set.description ? (
          <p className="text-soft mt-1 max-w-4xl text-sm wrap-anywhere">{set.description}</p>
        ) : null}
      </div>
      <ActionsMenu of={set.name}>
        <MenuItem icon="gear" onSelect={() => setOpen("edit")}>
          {t("Edit name and description")}
        </MenuItem>
        <MenuLine />
        <MenuItem icon="trash" danger onSelect={() => setOpen("delete")}>
          {t("Delete")}
        </MenuItem>
      </ActionsMenu>
      {open === "edit" ? <EditSet set={set} onClose={close} /> : null}
      {open === "delete" ? <DeleteSet set={set} onClose={close} /> : null}
    </header>
  )
}

/** Links, because the address names the tab: each can be bookmarked and shared. */
function Tabs({ set, current, unsaved }: { set: QuestionSet; current: SetTab; unsaved: boolean }): ReactNode {
  const { id: orgId } = useOrganization()
  const counts: Partial<Record<SetTab, number>> = set.counts
  return (
    <nav
      aria-label={t("Parts of the set")}
      className="border-line -mx-4 flex gap-x-1 overflow-x-auto overflow-y-hidden border-b px-4 [scrollbar-width:none] sm:mx-0 sm:flex-wrap sm:px-0"
    >
      {setTabs.map(([tab, name]) => (
        <Link
          key={tab}
          to="/o/$orgId/sets/$setName"
          params={{ orgId, setName: set.name }}
          search={tab === "questions" ? {} : { tab }}
          aria-current={tab === current ? "page" : undefined}
          ref={tab === current ? showTab : undefined}
          className={`-mb-px flex h-10 items-center gap-1.5 border-b-2 px-3 text-sm max-sm:px-2.5 font-medium whitespace-nowrap ${
            tab === current ? "border-accent text-ink" : "text-soft hover:text-ink border-transparent"
          }`}
        >
          {name}
          {counts[tab] ? (
            <span className="number text-soft text-xs font-normal">{count(counts[tab])}</span>
          ) : null}
          {tab === "shadow" && set.shadow ? (
            <span className="bg-accent size-1.5 rounded-full" role="img" aria-label={t("is running")} />
          ) : null}
          {tab === "questions" && unsaved ? (
            <span
              className="bg-warn size-1.5 rounded-full"
              role="img"
              aria-label={t("has unsaved changes")}
            />
          ) : null}
        </Link>
      ))}
    </nav>
  )
}

const showTab = (tab: HTMLElement | null): void => tab?.scrollIntoView({ block: "nearest", inline: "center" })

function EditSet({ set, onClose }: { set: QuestionSet; onClose: () => void }): ReactNode {
  const { id: org_id } = useOrganization()
  const navigate = useNavigate()
  const [name, setName] = useState(set.name)
  const [description, setDescription] = useState(set.description)
  const wrong = whatIsWrongWithName(name)
  const write = useWrite(
    async () =>
      await api.updateQuestionSet({ params: { org_id, set_id: set.id }, body: { name, description } }),
    [setsKey(org_id)],
    (changed) => {
      onClose()
      void navigate({
        to: "/o/$orgId/sets/$setName",
        params: { orgId: org_id, setName: changed.name },
        search: {},
        replace: true,
      })
    },
  )
  return (
    <FormDialog
      title={t("Name and description")}
      submit={t("Save")}
      write={write}
      onClose={onClose}
      ready={wrong === null}
    >
      <TextField
        label={t("Name")}
        required
        spellCheck={false}
        value={name}
        error={wrong}
        hint={
          name === set.name
            ? t("Asked as model “set:{name}”.", { name })
            : t("Requests for “set:{name}” fail as soon as the name changes.", { name: set.name })
        }
        onChange={(event) => setName(event.target.value)}
      />
      <AreaField
        label={t("Description")}
        rows={3}
        spellCheck
        value={description}
        onChange={(event) => setDescription(event.target.value)}
      />
    </FormDialog>
  )
}

function DeleteSet({ set, onClose }: { set: QuestionSet; onClose: () => void }): ReactNode {
  const { id: org_id } = useOrganization()
  const navigate = useNavigate()
  return (
    <ConfirmDialog
      title={t("Delete {name}?", { name: set.name })}
      submit={t("Delete set")}
      act={async () => {
        await api.deleteQuestionSet({ params: { org_id, set_id: set.id } })
        await navigate({ to: "/o/$orgId/sets", params: { orgId: org_id }, search: {} })
      }}
      refreshes={[[...setsKey(org_id), "list"]]}
      onClose={onClose}
    >
      {t(
        "Its versions, examples and what they taught are deleted, and requests for “set:{name}” fail at once.",
        { name: set.name },
      )}
    </ConfirmDialog>
  )
}
