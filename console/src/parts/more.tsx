/** Lists that come in pages: what has arrived so far, and a button for more. */
import { type QueryKey, useInfiniteQuery } from "@tanstack/react-query"
import type { ReactNode } from "react"
import { Button } from "./button.tsx"
import { t } from "../i18n/translate.ts"

interface PageOf<Item> {
  readonly data: Item[]
  readonly next_cursor: string | null
}

export function usePages<Item>(
  queryKey: QueryKey,
  read: (page: { cursor?: string }) => Promise<PageOf<Item>>,
  options: {
    readonly refetchInterval?: number
    readonly staleTime?: number
    readonly refetchOnWindowFocus?: boolean
  } = {},
) {
  const query = useInfiniteQuery({
    ...options,
    queryKey,
    initialPageParam: null as string | null,
    queryFn: async ({ pageParam }) => await read(pageParam === null ? {} : { cursor: pageParam }),
    getNextPageParam: ({ next_cursor }) => next_cursor,
  })
  return { ...query, data: query.data?.pages.flatMap(({ data }) => data) }
}

export type Pages<Item> = ReturnType<typeof usePages<Item>>

export function MoreButton({
  query,
}: {
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown }
}): ReactNode {
  if (!query.hasNextPage) return null
  return (
    <Button
      className="self-center"
      busy={query.isFetchingNextPage}
      onClick={() => void query.fetchNextPage()}
    >
      {t("Show more")}
    </Button>
  )
}
