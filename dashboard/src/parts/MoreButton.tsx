import { Button } from '@mantine/core'
import type { Pages } from './use-pages.ts'

type MoreProps = {
  pages: Pick<Pages, 'hasNextPage' | 'isFetchingNextPage'> & { fetchNextPage: () => unknown }
  children: string
}

/** At the end of a list that goes on. */
export function MoreButton({ pages, children }: MoreProps) {
  if (!pages.hasNextPage) return null
  return (
    <Button
      mt="sm"
      size="xs"
      variant="default"
      loading={pages.isFetchingNextPage}
      onClick={() => void pages.fetchNextPage()}
    >
      {children}
    </Button>
  )
}
