/** Requests as a table, newest first; each leads to its record. */
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { CallSource } from "../../../src/contract/endpoint.ts"
import type { SequenceDetail } from "../../../src/contract/sequences.ts"
import { clockTime, count, exactDollars, milliseconds, moment, smallDollars } from "../parts/format.ts"
import { Badge, type Tone } from "../parts/page.tsx"
import { Table } from "../parts/table.tsx"
import { useOrganization } from "../session.ts"
import type { Names } from "./use-names.ts"
import { t } from "../i18n/translate.ts"

const tones: Partial<Record<string, Tone>> = { success: "good", error: "bad", cancelled: "warn" }

export function ResultBadge({ of }: { of: Pick<SequenceDetail, "result" | "error_code"> }): ReactNode {
  return <Badge tone={tones[of.result] ?? "plain"}>{of.error_code || of.result}</Badge>
}

const endpointNames: Readonly<Record<CallSource, string>> = {
  decisions: t("Decisions"),
  systemone: "System One",
  responses: t("Responses"),
  responses_ws: t("Responses over WebSocket"),
  compact: t("Compaction"),
  chat_completions: t("Chat completions"),
  completions: t("Completions"),
  embeddings: t("Embeddings"),
  messages: t("Messages"),
  count_tokens: t("Token counts"),
  rerank: t("Reranking"),
  moderations: t("Moderations"),
  guardrail: t("Guardrails"),
  teach: t("Teaching"),
  check: t("Checks"),
  shadow: t("Shadow"),
  redaction: t("Redaction"),
}

/** One that a newer server has is shown as it is. */
export const endpointName = (callSource: string): string =>
  new Map<string, string>(Object.entries(endpointNames)).get(callSource) ?? callSource

/** Tags beyond these are on the record. */
const tagsShownMax = 3

export function RequestTable({
  rows,
  names,
  selected,
  onOpen,
  onRow,
}: {
  rows: readonly SequenceDetail[]
  names: Names
  selected: string | null
  /** By its link. */
  onOpen: (seqId: string) => void
  /** By a click beside the link. */
  onRow: (seqId: string) => void
}): ReactNode {
  const { id: orgId } = useOrganization()
  return (
    <Table
      label={t("Requests")}
      compact
      rows={rows}
      rowKey={({ seq_id }) => seq_id}
      isMarked={({ seq_id }) => seq_id === selected}
      onOpen={({ seq_id }) => onRow(seq_id)}
      columns={[
        {
          name: t("Time"),
          cell: ({ seq_id, timestamp }) => (
            <Link
              to="/o/$orgId/requests/$seqId"
              params={{ orgId, seqId: seq_id }}
              title={`${moment(timestamp)}, ${seq_id}`}
              onClick={() => onOpen(seq_id)}
              className="number text-accent whitespace-nowrap hover:underline"
            >
              {clockTime(timestamp)}
            </Link>
          ),
        },
        { name: t("Result"), cell: (row) => <ResultBadge of={row} /> },
        {
          name: t("Model"),
          cell: ({ model, question_set, question_set_version }) => (
            <>
              <span className="block max-w-48 truncate font-mono text-xs" title={model}>
                {model || "–"}
              </span>
              {question_set ? (
                <span
                  className="text-soft block max-w-48 truncate text-xs"
                  title={`${question_set}@${question_set_version}`}
                >
                  {question_set}@{question_set_version}
                </span>
              ) : null}
            </>
          ),
        },
        {
          name: t("Endpoint"),
          wide: true,
          cell: ({ call_source }) => <span className="whitespace-nowrap">{endpointName(call_source)}</span>,
        },
        {
          name: t("Caller and tags"),
          wide: true,
          cell: ({ principal_id, api_key_id, tags }) => {
            const id = principal_id ?? api_key_id
            return (
              <>
                {id ? names.of("principal_id", id) : <span className="text-soft">–</span>}
                <Tags tags={tags} />
              </>
            )
          },
        },
        {
          name: t("Latency"),
          align: "right",
          cell: ({ gateway_latency_ms }) => (
            <span className="number whitespace-nowrap">{milliseconds(gateway_latency_ms)}</span>
          ),
        },
        {
          name: t("Tokens"),
          align: "right",
          wide: true,
          cell: ({ input_tokens, cached_input_tokens, output_tokens }) => (
            <span
              className="number whitespace-nowrap"
              title={t("{inputTokens} in, {cachedInputTokens} cached, {outputTokens} out", {
                inputTokens: count(input_tokens),
                cachedInputTokens: count(cached_input_tokens),
                outputTokens: count(output_tokens),
              })}
            >
              {count(input_tokens + cached_input_tokens)} → {count(output_tokens)}
            </span>
          ),
        },
        {
          name: t("Cost"),
          align: "right",
          wide: true,
          cell: ({ cost }) => (
            <span className="number whitespace-nowrap" title={exactDollars(cost)}>
              {smallDollars(Number(cost))}
            </span>
          ),
        },
      ]}
    />
  )
}

function Tags({ tags }: { tags: SequenceDetail["tags"] }): ReactNode {
  const entries = Object.entries(tags)
  if (entries.length === 0) return null
  const hidden = entries.length - tagsShownMax
  return (
    <span
      className="text-soft block max-w-60 truncate text-xs"
      title={entries.map(([key, value]) => `${key}=${value}`).join("\n")}
    >
      {entries
        .slice(0, tagsShownMax)
        .map(([key, value]) => `${key}=${value}`)
        .join(", ")}
      {hidden > 0 ? ` +${hidden}` : ""}
    </span>
  )
}
