/** One request, in full: how it ended, where its time went, its tokens and cost, and its caller. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { Link, getRouteApi, useNavigate, useRouter } from "@tanstack/react-router"
import { type ReactNode, useEffect } from "react"
import { unknownLanguage } from "../../../src/contract/language.ts"
import type { SequenceDetail } from "../../../src/contract/sequences.ts"
import { ClientError, api } from "../api.ts"
import { contentFollowsMsMax, contentMayFollow, isContentKept } from "../content/content-follows.ts"
import { contentSettingsQuery } from "../content/content-panel.tsx"
import { KeptContentPanel } from "../content/kept-content.tsx"
import { Button } from "../parts/button.tsx"
import { CopyButton } from "../parts/copy-button.tsx"
import { Figure } from "../parts/figure.tsx"
import { count, exactDollars, instant, languageName } from "../parts/format.ts"
import { Icon } from "../parts/icon.tsx"
import { Empty, Loaded, Notice, Page, Panel } from "../parts/page.tsx"
import { useOrganization, useTabStorage } from "../session.ts"
import { LogLink } from "./log-link.tsx"
import type { LogFilter } from "./log-view.ts"
import { moveOpened, neighboursOf } from "./opened.ts"
import { Attempts, Stages, Timing } from "./record-timing.tsx"
import { ResultBadge, endpointName } from "./request-table.tsx"
import { useListKeys } from "./use-list-keys.ts"
import { useNames } from "./use-names.ts"
import { T } from "../i18n/sentence.tsx"
import { t } from "../i18n/translate.ts"

const route = getRouteApi("/o/$orgId/requests/$seqId")

/** While its content may still be stored, and while it waits to be redacted, which may take up to half an hour. */
const lookAgainMs = 2_000
const lookForRedactedMs = 10_000

export function RecordPage(): ReactNode {
  const { seqId: seq_id } = route.useParams()
  const { id: org_id } = useOrganization()
  const queries = useQueryClient()
  const query = useQuery({
    queryKey: ["sequence", org_id, seq_id],
    queryFn: async () => {
      const sequence = await api.getSequence({ params: { org_id, seq_id } })
      if (!contentMayFollow(sequence, Date.now())) return { sequence, contentFollows: false }
      // The record is shown without them, too.
      const settings = await queries
        .fetchQuery({ ...contentSettingsQuery(org_id), staleTime: contentFollowsMsMax })
        .catch(() => null)
      return { sequence, contentFollows: settings !== null && isContentKept(sequence, settings) }
    },
    refetchInterval: ({ state: { data, status } }) => {
      if (status === "error") return false
      if (data?.sequence.content === "redacting") return lookForRedactedMs
      return data?.contentFollows ? lookAgainMs : false
    },
  })
  const missing = query.error instanceof ClientError && query.error.status === 404
  return (
    <Page
      title={t("Request")}
      about={
        <span className="flex flex-wrap items-center gap-1">
          <span className="font-mono text-xs wrap-anywhere">{seq_id}</span>
          <CopyButton text={seq_id} label={t("Copy sequence id")} bare />
        </span>
      }
      actions={<Ways seqId={seq_id} />}
    >
      {missing ? (
        <div className="panel">
          <Empty icon="search" title={t("No such request")}>
            {t(
              "Nothing is recorded under this id in this organization. Records are kept for a limited time.",
            )}
          </Empty>
        </div>
      ) : (
        <Loaded query={query} label={t("Loading the request")}>
          {(found) => <Record {...found} />}
        </Loaded>
      )}
    </Page>
  )
}

/** Back to the list, and to the requests before and after this one in it. */
function Ways({ seqId }: { seqId: string }): ReactNode {
  const { id: orgId } = useOrganization()
  const navigate = useNavigate()
  const { history } = useRouter()
  const tab = useTabStorage()
  const neighbours = neighboursOf(tab, seqId)
  useEffect(() => {
    if (neighboursOf(tab, seqId)) moveOpened(tab, seqId)
  }, [tab, seqId])
  const open = (id: string | null): void => {
    // In place of this one, so that one step back is the list.
    if (id) void navigate({ to: "/o/$orgId/requests/$seqId", params: { orgId, seqId: id }, replace: true })
  }
  const leave = (): void => {
    if (neighbours) history.back()
    else void navigate({ to: "/o/$orgId/requests", params: { orgId }, search: {} })
  }
  useListKeys({
    j: () => open(neighbours?.older ?? null),
    k: () => open(neighbours?.newer ?? null),
    Escape: leave,
  })
  return (
    <>
      {neighbours ? (
        <>
          <Button
            icon="up"
            aria-label={t("Newer request")}
            title={t("Newer request (k)")}
            disabled={neighbours.newer === null}
            onClick={() => open(neighbours.newer)}
          />
          <Button
            icon="down"
            aria-label={t("Older request")}
            title={t("Older request (j)")}
            disabled={neighbours.older === null}
            onClick={() => open(neighbours.older)}
          />
        </>
      ) : null}
      <Button title="Esc" onClick={leave}>
        {neighbours ? t("Back to the list") : t("All requests")}
      </Button>
    </>
  )
}

function Record({
  sequence,
  contentFollows,
}: {
  sequence: SequenceDetail
  contentFollows: boolean
}): ReactNode {
  return (
    <>
      {sequence.error_code ? (
        <Notice tone="bad">
          <LogLink
            view={{ range: "30d", filters: { error_code: sequence.error_code } }}
            title={t("All requests with this error")}
            className="font-mono font-medium underline underline-offset-2"
          >
            {sequence.error_code}
          </LogLink>
          {sequence.error_message ? <span className="block">{sequence.error_message}</span> : null}
        </Notice>
      ) : null}
      <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-2">
        <div className="flex min-w-0 flex-col gap-4">
          <Panel title={t("Result")} actions={<ResultBadge of={sequence} />}>
            <Facts sequence={sequence} />
          </Panel>
          <Panel title={t("Timing")}>
            <Timing sequence={sequence} />
          </Panel>
          {sequence.stages.length > 0 ? <Stages sequence={sequence} /> : null}
          {sequence.attempts.length > 0 ? <Attempts sequence={sequence} /> : null}
          <KeptContentPanel
            key={sequence.seq_id}
            seqId={sequence.seq_id}
            state={sequence.content}
            follows={contentFollows}
          />
        </div>
        <div className="flex min-w-0 flex-col gap-4">
          <Panel title={t("Tokens and cost")}>
            <dl className="number flex flex-wrap justify-between gap-x-6 gap-y-3">
              <Figure name={t("Input")} value={count(sequence.input_tokens)} />
              <Figure name={t("Cached")} value={count(sequence.cached_input_tokens)} />
              <Figure name={t("Output")} value={count(sequence.output_tokens)} />
              <Figure name={t("Cost, exact")} value={exactDollars(sequence.cost)} />
            </dl>
          </Panel>
          <Panel title={t("Caller")}>
            <Caller sequence={sequence} />
          </Panel>
          <Panel title={t("Tags")}>
            <Tags tags={sequence.tags} />
          </Panel>
        </div>
      </div>
    </>
  )
}

/** Behind a value: all requests that share it. */
function Alike({ filter, value, words }: { filter: LogFilter; value: string; words: string }): ReactNode {
  return (
    <LogLink
      view={{ range: "30d", filters: { [filter]: value } }}
      className="text-soft hover:bg-sunken hover:text-ink inline-grid size-6 shrink-0 place-items-center rounded align-top"
      title={words}
      aria-label={words}
    >
      <Icon name="filter" className="size-3.5" />
    </LogLink>
  )
}

const linkLooks = "text-accent underline-offset-2 hover:underline"

function Facts({ sequence }: { sequence: SequenceDetail }): ReactNode {
  const { id: orgId } = useOrganization()
  const { question_set: set, question_set_version: version, questions, abstained } = sequence
  return (
    <List
      rows={[
        [t("Started"), instant(sequence.timestamp)],
        [
          t("Endpoint"),
          <>
            {endpointName(sequence.call_source)}{" "}
            <Alike
              filter="endpoint"
              value={sequence.call_source}
              words={t("All requests to this endpoint")}
            />
          </>,
        ],
        [
          t("Model"),
          sequence.model ? (
            <>
              <Link to="/o/$orgId/models" params={{ orgId }} className={linkLooks}>
                {sequence.model}
              </Link>{" "}
              <Alike filter="model" value={sequence.model} words={t("All requests for this model")} />
            </>
          ) : null,
        ],
        [
          t("Question set"),
          set ? (
            <>
              <Link
                to="/o/$orgId/sets/$setName"
                params={{ orgId, setName: sequence.question_set_id ?? set }}
                search={{ tab: "versions" }}
                className={linkLooks}
              >
                {version === null ? set : t("{set}, version {version}", { set, version })}
              </Link>{" "}
              <Alike
                filter="question_set_id"
                value={sequence.question_set_id ?? set}
                words={t("All requests for this question set")}
              />
            </>
          ) : null,
        ],
        [
          t("Questions"),
          questions
            ? abstained === null
              ? t("{questions} asked", { questions: count(questions) })
              : t("{questions} asked, {abstained} abstained", {
                  questions: count(questions),
                  abstained: count(abstained),
                })
            : null,
        ],
        [
          t("Language"),
          sequence.language === unknownLanguage ? null : (
            <>
              {languageName(sequence.language)}{" "}
              <Alike filter="language" value={sequence.language} words={t("All requests in this language")} />
            </>
          ),
        ],
        [t("Stop reason"), sequence.stop_reason],
        [t("Tools called"), sequence.tool_calls.join(", ")],
        [
          t("Region"),
          sequence.region ? (
            <>
              {sequence.region}{" "}
              <Alike filter="region" value={sequence.region} words={t("All requests in this region")} />
            </>
          ) : null,
        ],
      ]}
    />
  )
}

const kinds = { key: t("API key"), user: t("Member"), workload: t("Workload") } as const

function Caller({ sequence }: { sequence: SequenceDetail }): ReactNode {
  const { id: orgId } = useOrganization()
  const names = useNames()
  const id = sequence.principal_id ?? sequence.api_key_id
  const kind = sequence.principal_kind ?? (sequence.api_key_id ? "key" : null)
  const name = id ? names.of("principal_id", id) : null
  return (
    <List
      rows={[
        [
          kind ? kinds[kind] : t("Caller"),
          id === null ? (
            t("a session or workload token")
          ) : (
            <>
              {kind === "workload" ? (
                id
              ) : (
                <Link
                  to={kind === "user" ? "/o/$orgId/members" : "/o/$orgId/keys"}
                  params={{ orgId }}
                  search={{ show: id }}
                  className={linkLooks}
                >
                  {name}
                </Link>
              )}{" "}
              <Alike filter="principal_id" value={id} words={t("All requests of this caller")} />
            </>
          ),
        ],
        [t("Address"), sequence.client_ip],
        [t("Client"), sequence.client_ua],
        [
          t("Request id"),
          sequence.request_id ? (
            <span className="inline-flex max-w-full flex-wrap items-center gap-1 align-top">
              <span className="font-mono text-xs">{sequence.request_id}</span>
              <CopyButton text={sequence.request_id} label={t("Copy request id")} bare />
            </span>
          ) : null,
        ],
      ]}
    />
  )
}

function Tags({ tags }: { tags: SequenceDetail["tags"] }): ReactNode {
  const entries = Object.entries(tags)
  if (entries.length === 0)
    return (
      <p className="text-soft text-sm">
        <T
          text="None. The header <code>x-umpire-tags: team=ops,job=42</code> sets them."
          code={(children) => <code className="font-mono text-xs">{children}</code>}
        />
      </p>
    )
  return (
    <ul className="flex flex-wrap gap-2" aria-label={t("Tags")}>
      {entries.map(([key, value]) => (
        <li key={key}>
          <LogLink
            view={{ range: "30d", tags: [`${key}=${value}`] }}
            title={t("All requests with this tag")}
            className="bg-sunken hover:bg-accent-wash hover:text-accent rounded-full px-2.5 py-1 text-xs wrap-anywhere"
          >
            <span className="text-soft">{key}</span> {value}
          </LogLink>
        </li>
      ))}
    </ul>
  )
}

function List({ rows }: { rows: readonly (readonly [string, ReactNode])[] }): ReactNode {
  return (
    <dl className="number grid grid-cols-[auto_minmax(0,1fr)] gap-x-6 gap-y-1 text-sm leading-6">
      {rows
        .filter(([, value]) => Boolean(value))
        .map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-soft">{name}</dt>
            <dd className="wrap-anywhere">{value}</dd>
          </div>
        ))}
    </dl>
  )
}
