/** The question sets of the organization. */
import { Link } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import type { QuestionSetItem } from "../../../src/contract/question-sets/sets.ts"
import { api } from "../api.ts"
import { Button } from "../parts/button.tsx"
import { ago, count, moment } from "../parts/format.ts"
import { MoreButton, usePages } from "../parts/more.tsx"
import { Badge, Empty, Loaded, Page } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { useBrowserStorage, useOrganization, useTabStorage } from "../session.ts"
import { useOpenRequest } from "../shell/open-request.ts"
import { NewSet } from "./create-set.tsx"
import { keptSetDraft } from "./kept-set-draft.ts"
import { setsKey } from "./set-query.ts"
import { t } from "../i18n/translate.ts"

export function SetsPage(): ReactNode {
  const { id: org_id } = useOrganization()
  const [creating, setCreating] = useState(false)
  const create = (): void => setCreating(true)
  useOpenRequest(create)
  const sets = usePages(
    [...setsKey(org_id), "list"],
    async (query) => await api.listQuestionSets({ params: { org_id }, query }),
  )
  return (
    <Page
      title={t("Question sets")}
      about={t(
        "Questions that you ask again and again: with versions, thresholds, and what labelled examples taught them.",
      )}
      actions={
        sets.data?.length ? (
          <Button kind="loud" icon="plus" onClick={create}>
            {t("New set")}
          </Button>
        ) : null
      }
    >
      <Loaded query={sets} label={t("Loading question sets")}>
        {(rows) => (rows.length === 0 ? <NoSets onCreate={create} /> : <SetTable rows={rows} />)}
      </Loaded>
      <MoreButton query={sets} />
      {creating ? <NewSet onClose={() => setCreating(false)} /> : null}
    </Page>
  )
}

function NoSets({ onCreate }: { onCreate: () => void }): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <div className="panel">
      <Empty
        icon="cards"
        title={t("No question sets yet")}
        action={
          <div className="flex flex-wrap justify-center gap-2">
            <Button kind="loud" icon="plus" onClick={onCreate}>
              {t("New set")}
            </Button>
            <Link
              to="/o/$orgId/start"
              params={{ orgId }}
              search={{}}
              className="border-strong bg-panel hover:bg-sunken inline-flex h-9 items-center rounded-md border px-3 text-sm font-medium"
            >
              {t("Start from your rows")}
            </Link>
            <Link
              to="/o/$orgId/playground"
              params={{ orgId }}
              className="border-strong bg-panel hover:bg-sunken inline-flex h-9 items-center rounded-md border px-3 text-sm font-medium"
            >
              {t("Open the playground")}
            </Link>
          </div>
        }
      >
        {t(
          "A set keeps questions under a name, which requests give as their model. It learns from labelled examples, and abstains where its answer is less sure than you ask for.",
        )}
      </Empty>
    </div>
  )
}

function SetTable({ rows }: { rows: readonly QuestionSetItem[] }): ReactNode {
  const { id: orgId } = useOrganization()
  const storages = [useTabStorage(), useBrowserStorage()]
  const isUnsaved = (id: string): boolean => storages.some((storage) => keptSetDraft(storage, id) !== null)
  return (
    <Table
      label={t("Question sets")}
      rows={rows}
      rowKey={({ id }) => id}
      columns={[
        {
          name: t("Name"),
          cell: ({ id, name, description }) => (
            <>
              <Link
                to="/o/$orgId/sets/$setName"
                params={{ orgId, setName: name }}
                search={{}}
                className="text-accent font-medium hover:underline"
              >
                {name}
              </Link>{" "}
              {isUnsaved(id) ? <Badge tone="warn">{t("Unsaved changes")}</Badge> : null}
              {description ? (
                <span className="text-soft line-clamp-2 max-w-md text-xs">{description}</span>
              ) : null}
            </>
          ),
        },
        {
          name: t("Model"),
          cell: ({ model }) => <span className="font-mono text-xs md:whitespace-nowrap">{model}</span>,
        },
        {
          name: t("Questions"),
          align: "right",
          cell: ({ question_names: names }) => (
            <span className="number" title={names.join(", ")}>
              {count(names.length)}
            </span>
          ),
        },
        {
          name: t("Latest"),
          cell: ({ latest_version, outdated }) => (
            <span className="number whitespace-nowrap">
              {t("Version {latestVersion}", { latestVersion: latest_version })}{" "}
              {outdated ? <Badge tone="warn">{t("Teach again")}</Badge> : null}
            </span>
          ),
        },
        {
          name: t("Production"),
          cell: ({ production_version }) =>
            production_version === null ? (
              <span className="text-soft whitespace-nowrap">{t("Not published")}</span>
            ) : (
              <Badge tone="good">
                {t("Version {productionVersion}", { productionVersion: production_version })}
              </Badge>
            ),
        },
        {
          name: t("Examples"),
          align: "right",
          cell: ({ examples }) => <span className="number">{count(examples)}</span>,
        },
        {
          name: t("Changed"),
          cell: ({ updated_at }) => (
            <span className="whitespace-nowrap" title={moment(updated_at)}>
              {ago(updated_at)}
            </span>
          ),
        },
      ]}
    />
  )
}
