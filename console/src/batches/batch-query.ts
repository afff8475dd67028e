/** Batches as the pages read them: lists, one, and what came of it. */
import { queryOptions, useQuery } from "@tanstack/react-query"
import type { CallSource } from "../../../src/contract/endpoint.ts"
import type { BatchObject } from "../../../src/contract/openai/batches.ts"
import { ClientError, api } from "../api.ts"
import { usePages } from "../parts/more.tsx"
import { endpointName } from "../requests/request-table.tsx"
import { useOrganization } from "../session.ts"
import { organizationHeader, readFile } from "./batch-files.ts"
import { type ResultLine, readResultLines } from "./result-lines.ts"
import { type Sheet, readSheet } from "./sheet.ts"
import { tn } from "../i18n/translate.ts"

export const batchesKey = (orgId: string): readonly unknown[] => ["batches", orgId]

const listRefreshMs = 3_000
const oneRefreshMs = 1_000
const pageSize = 50

const ended = new Set<BatchObject["status"]>(["completed", "failed", "expired", "cancelled"])
export const isEnded = ({ status }: Pick<BatchObject, "status">): boolean => ended.has(status)
export const isEvaluation = ({ metadata }: BatchObject): boolean => metadata?.["kind"] === "evaluation"
/** As the console named it, or null for a batch of a program that named none. */
export const givenName = ({ metadata }: BatchObject): string | null => metadata?.["name"] || null
export const batchName = (batch: BatchObject): string => givenName(batch) ?? batch.id

export interface BatchFilters {
  readonly name?: string
  readonly status?: BatchObject["status"] | "open"
  readonly kind?: string
}

export function useBatches(filters: BatchFilters = {}) {
  const { id: orgId } = useOrganization()
  return usePages(
    [...batchesKey(orgId), "list", filters],
    async ({ cursor }) => {
      const query = { ...filters, limit: pageSize, ...(cursor === undefined ? {} : { after: cursor }) }
      const page = await api.listBatches({ query, headers: organizationHeader(orgId) })
      return { data: page.data, next_cursor: page.has_more ? page.last_id : null }
    },
    { refetchInterval: listRefreshMs },
  )
}

const batchQuery = (orgId: string, batch_id: string) =>
  queryOptions({
    queryKey: [...batchesKey(orgId), "one", batch_id],
    queryFn: async () => await api.getBatch({ params: { batch_id }, headers: organizationHeader(orgId) }),
    refetchInterval: ({ state: { data } }) => (data && isEnded(data) ? false : oneRefreshMs),
  })

export function useBatch(batchId: string) {
  const { id: orgId } = useOrganization()
  return useQuery(batchQuery(orgId, batchId))
}

const sources: Readonly<Record<BatchObject["endpoint"], CallSource>> = {
  "/v1/decisions": "decisions",
  "/v1/systemone": "systemone",
  "/v1/chat/completions": "chat_completions",
  "/v1/responses": "responses",
  "/v1/embeddings": "embeddings",
  "/v1/messages": "messages",
}

/** As the request log calls it. */
const kindOf = (endpoint: BatchObject["endpoint"]): string => endpointName(sources[endpoint])

/** What the batch asks and of how many lines: for one whose file has expired. */
const kindOfBatch = ({ endpoint, request_counts: { total } }: BatchObject): string =>
  total === 0
    ? kindOf(endpoint)
    : tn(total, "{kinds}, {count} line", "{kinds}, {count} lines", { kinds: kindOf(endpoint) })

/** For people: its own name, that of its input file, or its kind. */
export function useBatchName(batch: BatchObject | undefined): string | null {
  const { id: orgId } = useOrganization()
  const given = batch ? givenName(batch) : null
  const { data: fileName } = useQuery({
    queryKey: ["files", orgId, batch?.input_file_id, "name"],
    staleTime: Infinity,
    enabled: batch !== undefined && given === null,
    queryFn: async () => await fileNameOf(orgId, batch?.input_file_id ?? ""),
  })
  return given ?? fileName ?? (batch ? kindOfBatch(batch) : null)
}

/** Null once the file has expired or was deleted. */
async function fileNameOf(orgId: string, file_id: string): Promise<string | null> {
  try {
    return (await api.getFile({ params: { file_id }, headers: organizationHeader(orgId) })).filename
  } catch (error) {
    if (error instanceof ClientError && error.status === 404) return null
    throw error
  }
}

export interface BatchResults {
  readonly lines: readonly ResultLine[]
  /** Null where the batch was not made from a table, or the file is gone. */
  readonly sheet: Sheet | null
  /** Files that are no longer there, or are too large to be shown. */
  readonly missing: "expired" | "too large" | null
}

/** What a page shows; larger files are for downloading. */
const shownBytesMax = 64 * 1024 * 1024

/** Of an ended batch. */
export const resultsQuery = (orgId: string, batch: BatchObject) =>
  queryOptions({
    queryKey: [...batchesKey(orgId), "results", batch.id],
    staleTime: Infinity,
    enabled: isEnded(batch),
    queryFn: async (): Promise<BatchResults> => {
      const { output_file_id, error_file_id, metadata } = batch
      const texts = await Promise.all(
        [output_file_id, error_file_id, metadata?.["sheet_file_id"] ?? null].map(
          async (id) => await readShown(orgId, id),
        ),
      )
      const [output, errors, sheet] = texts
      const bad = [output, errors].find((one) => one !== undefined && "missing" in one)
      return {
        lines: [...readResultLines(textOf(output)), ...readResultLines(textOf(errors))],
        sheet: readSheet(textOf(sheet)),
        missing: bad && "missing" in bad ? bad.missing : null,
      }
    },
  })

type Shown = { readonly text: string } | { readonly missing: "expired" | "too large" }

const textOf = (shown: Shown | undefined): string => (shown && "text" in shown ? shown.text : "")

async function readShown(orgId: string, file_id: string | null): Promise<Shown> {
  if (file_id === null) return { text: "" }
  try {
    const { bytes } = await api.getFile({ params: { file_id }, headers: organizationHeader(orgId) })
    if (bytes > shownBytesMax) return { missing: "too large" }
    return { text: new TextDecoder().decode(await readFile(orgId, file_id)) }
  } catch (error) {
    if (error instanceof ClientError && error.status === 404) return { missing: "expired" }
    throw error
  }
}

export function useResults(batch: BatchObject) {
  const { id: orgId } = useOrganization()
  return useQuery(resultsQuery(orgId, batch))
}
