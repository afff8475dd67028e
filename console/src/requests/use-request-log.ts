/** The rows of the Requests page: pages of the API, and in live mode what came since, shown when it does not disturb. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { useEffect, useMemo, useState } from "react"
import type { SequenceDetail } from "../../../src/contract/sequences.ts"
import { api } from "../api.ts"
import { usePages } from "../parts/more.tsx"
import { type LogView, logQuery } from "./log-view.ts"

const pollMs = 3000
const pageRows = 50
/** More than this is loaded anew, so that a page left open does not grow for ever. */
const takenMax = 500

/** When the rows of the last view were begun: who comes back from a record finds the same rows. */
let last = { key: "", nowMs: 0 }

export function useRequestLog(
  org_id: string,
  view: LogView,
  { live, isReading }: { live: boolean; isReading: () => boolean },
) {
  const key = JSON.stringify([org_id, view])
  const [begun, setBegun] = useState(0)
  const query = useMemo(() => logQuery(view, beganAt(key)), [key, begun])
  const queryKey = ["requests", org_id, query]
  const read = async (page: { cursor?: string }) =>
    await api.listSequences({ params: { org_id }, query: { ...query, ...page, limit: pageRows } })
  const pages = usePages(queryKey, read, {
    refetchOnWindowFocus: false,
    ...(live ? { staleTime: Infinity } : {}),
  })
  const newest = useQuery({
    queryKey: [...queryKey, "newest"],
    enabled: live && pages.data !== undefined,
    // While the page is hidden, nothing is asked.
    refetchInterval: pollMs,
    staleTime: 0,
    queryFn: async () => (await read({})).data,
  })
  const [taken, setTaken] = useState<{ key: string; rows: readonly SequenceDetail[] }>({ key, rows: [] })
  const before = taken.key === key ? taken.rows : []
  const listed = new Set(pages.data?.map(({ seq_id }) => seq_id))
  const rows = pages.data && [...before.filter(({ seq_id }) => !listed.has(seq_id)), ...pages.data]
  const known = new Set(rows?.map(({ seq_id }) => seq_id))
  const fresh = live ? (newest.data ?? []).filter(({ seq_id }) => !known.has(seq_id)) : []
  const queries = useQueryClient()
  const reload = (): void => {
    last = { key: "", nowMs: 0 }
    queries.removeQueries({ queryKey })
    setTaken({ key, rows: [] })
    setBegun(begun + 1)
  }
  const take = (): void => {
    // Before a whole page of new rows there may be others.
    if (fresh.length >= pageRows || before.length + fresh.length > takenMax) reload()
    else setTaken({ key, rows: [...fresh, ...before] })
  }
  useEffect(() => {
    if (fresh.length > 0 && !isReading()) take()
    // Only an arrival counts.
  }, [newest.dataUpdatedAt])
  return { ...pages, data: rows, fresh: fresh.length, take, reload }
}

function beganAt(key: string): number {
  if (last.key !== key) last = { key, nowMs: Date.now() }
  return last.nowMs
}
