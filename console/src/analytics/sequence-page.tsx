/** One request, in full: how it ended, how long it took, its tokens, and its caller. */
import { useQuery } from "@tanstack/react-query"
import { Link, getRouteApi } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { Sequence } from "../../../src/contract/analytics.ts"
import { ClientError, api } from "../api.ts"
import { CopyButton } from "../parts/button.tsx"
import { Figure } from "../parts/figure.tsx"
import { count, milliseconds, moment } from "../parts/format.ts"
import { Badge, Empty, Loaded, Notice, Page, Panel, type Tone } from "../parts/page.tsx"
import { useOrganization } from "../session.ts"
import { useKeyNames } from "./key-names.ts"
import { ViewLink } from "./view-link.tsx"
import type { View } from "./view.ts"

const route = getRouteApi("/o/$orgId/sequences/$seqId")

export function SequencePage(): ReactNode {
  const { seqId: seq_id } = route.useParams()
  const { id: org_id } = useOrganization()
  const query = useQuery({
    queryKey: ["sequence", org_id, seq_id],
    queryFn: async () => await api.getAnalyticsSequence({ params: { org_id, seq_id } }),
  })
  const missing = query.error instanceof ClientError && query.error.status === 404
  return (
    <Page
      title="Request"
      about={
        <span className="flex flex-wrap items-center gap-1">
          <span className="font-mono text-xs wrap-anywhere">{seq_id}</span>
          <CopyButton text={seq_id} label="Copy sequence id" bare />
        </span>
      }
      actions={
        <Link
          to="/o/$orgId/analytics"
          params={{ orgId: org_id }}
          search={{}}
          className="text-accent text-sm hover:underline"
        >
          Open Analytics
        </Link>
      }
    >
      {missing ? (
        <div className="panel">
          <Empty icon="search" title="No such request">
            Nothing is recorded under this id in this organization. Records are kept for a limited time.
          </Empty>
        </div>
      ) : (
        <Loaded query={query} what="the request">
          {({ sequence }) => <Facts sequence={sequence} />}
        </Loaded>
      )}
    </Page>
  )
}

const monthView: View = { range: "30d", metric: "errors", by: "model", filters: [] }
const tones: Partial<Record<string, Tone>> = { success: "good", error: "bad", cancelled: "warn" }

function Facts({ sequence }: { sequence: Sequence }): ReactNode {
  const keyNameOf = useKeyNames("api_key_id")
  return (
    <>
      {sequence.error_code ? (
        <Notice tone="bad">
          <ViewLink
            view={monthView}
            change={{ filters: [`error_code:${sequence.error_code}`] }}
            title="All requests with this error"
            className="font-mono font-medium underline"
          >
            {sequence.error_code}
          </ViewLink>
          {sequence.error_message ? <span className="block">{sequence.error_message}</span> : null}
        </Notice>
      ) : null}
      <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-2">
        <Panel
          title="Result"
          actions={<Badge tone={tones[sequence.result] ?? "plain"}>{sequence.result}</Badge>}
        >
          <Course firstByteMs={sequence.gateway_latency_ms} tookMs={sequence.seq_duration_ms} />
          <List
            rows={[
              ["Started", moment(sequence.timestamp)],
              ["Model", sequence.model],
              ["Endpoint", sequence.call_source.replaceAll("_", " ")],
              ["Stop reason", sequence.stop_reason],
              ["Tools called", sequence.tool_calls.join(", ")],
            ]}
          />
        </Panel>
        <div className="flex flex-col gap-4">
          <Panel title="Tokens">
            <dl className="number grid grid-cols-3 gap-3">
              <Figure name="Input" value={count(sequence.input_tokens)} />
              <Figure name="Cached" value={count(sequence.cached_input_tokens)} />
              <Figure name="Output" value={count(sequence.output_tokens)} />
            </dl>
          </Panel>
          <Panel title="Caller">
            <List
              rows={[
                [
                  "API key",
                  sequence.api_key_id ? keyNameOf(sequence.api_key_id) : "a session or workload token",
                ],
                ["Address", sequence.client_ip],
                ["Client", sequence.client_ua],
                ["Request id", sequence.request_id],
              ]}
            />
          </Panel>
        </div>
      </div>
    </>
  )
}

/** The time until the first byte, and the rest, on one bar. */
function Course({ firstByteMs, tookMs }: { firstByteMs: number; tookMs: number }): ReactNode {
  const share = tookMs > 0 ? Math.min(1, firstByteMs / tookMs) : 1
  return (
    <div className="mb-4">
      <div className="bg-bar-rest flex h-2.5 overflow-hidden rounded-full" aria-hidden="true">
        <span className="bg-bar" style={{ width: `${share * 100}%` }} />
      </div>
      <p className="number text-soft mt-1.5 flex justify-between gap-3 text-xs">
        <span>
          First byte <strong className="text-ink font-medium">{milliseconds(firstByteMs)}</strong>
        </span>
        <span>
          Total <strong className="text-ink font-medium">{milliseconds(tookMs)}</strong>
        </span>
      </p>
    </div>
  )
}

function List({ rows }: { rows: readonly (readonly [string, string | null | undefined])[] }): ReactNode {
  return (
    <dl className="number grid grid-cols-[auto_minmax(0,1fr)] gap-x-6 gap-y-1.5 text-sm">
      {rows
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-soft">{name}</dt>
            <dd className="wrap-anywhere">{value}</dd>
          </div>
        ))}
    </dl>
  )
}
