/** `umpire requests`: the request log at the terminal, filtered, and followed as requests come in. */
import { setTimeout as wait } from "node:timers/promises"
import type { Client } from "../contract/client.ts"
import { table } from "../contract/table.ts"
import type { SequenceDetail } from "../contract/sequences.ts"
import { connectApi } from "./api-client.ts"
import {
  type CliContext,
  type Command,
  UsageError,
  flagOption,
  listOption,
  numberOf,
  show,
  text,
  texts,
  valueOption,
  wholeNumbersFrom,
} from "./command.ts"
import { readFields } from "./actions.ts"
import { apiOptions } from "./server-options.ts"
import { drawTable, printable } from "./table.ts"

const pollIntervalMs = 2_000
/** A follower looks back this far each time: records arrive a little after their requests began. */
const overlapMs = 60_000
const idsKeptMax = 20_000
const limitDefault = 50
const limitMax = 999_999
const pageMax = 200

/** Options that are parameters of the list, and what each means. */
const filters = {
  "key-id": { field: "api_key_id", help: "only with this API key" },
  principal: { field: "principal_id", help: "only of this key, user or identity provider" },
  model: { field: "model", help: "only of this model" },
  set: { field: "question_set_id", help: "only of this question set (qs_...)" },
  version: { field: "question_set_version", help: "only of this version of the set" },
  endpoint: { field: "endpoint", help: "only of this endpoint, such as decisions" },
  result: { field: "result", help: "success, error or cancelled" },
  error: { field: "error_code", help: "only with this error code" },
  region: { field: "region", help: "only in this region" },
  language: { field: "language", help: "only of texts in this language, such as de, or unknown" },
  request: { field: "request_id", help: "the x-request-id of a response" },
  "latency-min": { field: "latency_ms_min", help: "at least so many milliseconds" },
  "latency-max": { field: "latency_ms_max", help: "at most so many milliseconds" },
  "cost-min": { field: "cost_min", help: "at least so many USD" },
  "cost-max": { field: "cost_max", help: "at most so many USD" },
  verdict: { field: "verdict", help: "abstained or answered" },
} as const

export const requests: Command = {
  usage: [
    "umpire requests [--result error] [--since 2h] [--tag team=ops] [--limit 50]",
    "umpire requests --follow [filters]",
    "umpire requests show seq_...",
    "",
    "Newest first; --follow prints them as they come, oldest first.",
  ],
  options: {
    follow: flagOption("print requests as they come, until interrupted", "f"),
    limit: valueOption(`how many to print (default ${limitDefault})`, "n"),
    since: valueOption(
      "only what began this long ago or later: 90s, 15m, 2h or 7d; or a time such as 2026-01-31T00:00:00Z",
    ),
    tag: listOption("only with this tag: key, key=value, or key= for none; may be repeated"),
    ...Object.fromEntries(Object.entries(filters).map(([name, { help }]) => [name, valueOption(help)])),
    ...apiOptions,
    json: flagOption("print JSON, one request a line with --follow"),
  },
  run: async (context) => await run(context),
}

const latencyMsMax = 4_294_967_295
const usd = { takes: "USD, such as 0.01", fits: (value: number) => value >= 0 }

type ListQuery = NonNullable<Parameters<Client["listSequences"]>[0]["query"]>

async function run(context: CliContext): Promise<number> {
  const [action, seqId] = context.positionals
  if (action !== undefined && action !== "show") throw new UsageError("say show seq_..., or nothing")
  const limit = numberOf(context, "limit", wholeNumbersFrom(1, limitMax)) ?? limitDefault
  const query = queryOf(context)
  const { client, organizationId } = await connectApi(context)
  if (action === "show") return await showOne(context, client, { org_id: organizationId, seq_id: seqId })
  if (context.values["follow"] === true)
    return await follow(context, client, { org_id: organizationId, query })
  const found = await list(client, organizationId, { query, limit })
  return show(context, found, () => draw(found))
}

async function showOne(
  context: CliContext,
  client: Client,
  { org_id, seq_id }: { org_id: string; seq_id: string | undefined },
): Promise<number> {
  if (seq_id === undefined) throw new UsageError("which request? umpire requests show seq_...")
  const sequence = await client.getSequence({ params: { org_id, seq_id } })
  return show(context, sequence, () =>
    drawTable(
      ["field", "value"],
      Object.entries(sequence).map(([name, value]) => [name, cellOf(name, value)]),
    ),
  )
}

function cellOf(name: string, value: SequenceDetail[keyof SequenceDetail]): string {
  if (name === "timestamp" && typeof value === "number") return timeText(value)
  return typeof value === "object" ? JSON.stringify(value) : String(value)
}

const timeText = (ms: number): string => new Date(ms).toISOString()

async function list(
  client: Client,
  org_id: string,
  { query, limit }: { query: ListQuery; limit: number },
): Promise<SequenceDetail[]> {
  const found: SequenceDetail[] = []
  let cursor: string | null | undefined
  while (found.length < limit && cursor !== null) {
    const page = {
      limit: Math.min(pageMax, limit - found.length),
      ...(cursor === undefined ? {} : { cursor }),
    }
    const { data, next_cursor } = await client.listSequences({
      params: { org_id },
      query: { ...query, ...page },
    })
    found.push(...data)
    cursor = next_cursor
  }
  return found
}

/** Until the process is interrupted. */
async function follow(
  context: CliContext,
  client: Client,
  { org_id, query }: { org_id: string; query: ListQuery },
): Promise<number> {
  const seen = new Set<string>()
  let sinceMs = Number(query.range_start ?? Date.now())
  for (;;) {
    const all = await list(client, org_id, {
      query: { ...query, range_start: String(sinceMs) },
      limit: idsKeptMax,
    })
    for (const sequence of all.toReversed()) {
      if (seen.has(sequence.seq_id)) continue
      seen.add(sequence.seq_id)
      context.stdout.write(
        context.values["json"] === true ? `${JSON.stringify(sequence)}\n` : drawLine(sequence),
      )
    }
    for (const seqId of seen) {
      if (seen.size <= idsKeptMax) break
      seen.delete(seqId)
    }
    sinceMs = Math.max(sinceMs, Math.max(...all.map(({ timestamp }) => timestamp), 0) - overlapMs)
    await wait(pollIntervalMs)
  }
}

function queryOf(context: CliContext): ListQuery {
  for (const option of ["latency-min", "latency-max", "version"])
    numberOf(context, option, wholeNumbersFrom(0, latencyMsMax))
  for (const option of ["cost-min", "cost-max"]) numberOf(context, option, usd)
  const fields = Object.entries(filters).map(([option, { field }]) => [option, field] as const)
  const since = text(context, "since")
  return {
    ...readFields(context, table.listSequences.query, Object.fromEntries(fields)),
    tag: texts(context, "tag"),
    ...(since === undefined ? {} : { range_start: String(sinceMs(since)) }),
  }
}

const unitsMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

function sinceMs(since: string): number {
  const [, count, unit = ""] = /^(\d{1,6})([smhd])$/.exec(since) ?? []
  const unitMs = unitsMs[unit]
  if (unitMs !== undefined) return Date.now() - Number(count) * unitMs
  const atMs = Date.parse(since)
  if (Number.isNaN(atMs))
    throw new UsageError("--since takes 90s, 15m, 2h, 7d or a time such as 2026-01-31T00:00:00Z")
  return atMs
}

const head = ["time", "request", "endpoint", "model", "result", "ms", "tokens", "USD", "tags"]

function draw(found: readonly SequenceDetail[]): string {
  return found.length === 0 ? "No requests were found.\n" : drawTable(head, found.map(cellsOf))
}

const drawLine = (sequence: SequenceDetail): string => `${cellsOf(sequence).map(printable).join("  ")}\n`

function cellsOf(sequence: SequenceDetail): string[] {
  const { input_tokens, cached_input_tokens, output_tokens, tags } = sequence
  return [
    timeText(sequence.timestamp),
    sequence.seq_id,
    sequence.call_source,
    sequence.model,
    sequence.error_code ?? sequence.result,
    String(sequence.gateway_latency_ms),
    String(input_tokens + cached_input_tokens + output_tokens),
    sequence.cost,
    Object.entries(tags)
      .map(([key, value]) => `${key}=${value}`)
      .join(","),
  ]
}
