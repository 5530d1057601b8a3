import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'

export type Page<T> = { data: T[]; nextCursor: string | null }
/** The query parameter for the next page. */
export type CursorQuery = { cursor?: string }

/** A paged list. The previous items stay visible until the new ones have loaded. */
export function usePages<T, More extends object>(
  queryKey: readonly unknown[],
  read: (cursorQuery: CursorQuery) => Promise<Page<T> & More>,
  { refetchMs = false }: { refetchMs?: number | false } = {},
) {
  const pages = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam }) => read(pageParam === null ? {} : { cursor: pageParam }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }) => nextCursor,
    placeholderData: keepPreviousData,
    refetchInterval: refetchMs,
  })
  return { pages, items: pages.data?.pages.flatMap(({ data }) => data) ?? [] }
}

export type Pages = ReturnType<typeof usePages>['pages']
