import { useState } from 'react'
import { BusyButton } from '../BusyButton.tsx'
import type { Pages } from './use-pages.ts'

type LoadMoreProps = {
  pages: Pick<Pages, 'hasNextPage' | 'isFetchingNextPage'> & { fetchNextPage: () => unknown }
  children: string
}

/** Loads the next page. Stays after the last page if it was used, so that keyboard focus isn't lost. */
export function LoadMoreButton({ pages, children }: LoadMoreProps) {
  const [wasClicked, setClicked] = useState(false)
  if (!pages.hasNextPage && !wasClicked) return null
  return (
    <BusyButton
      mt="sm"
      size="xs"
      variant="default"
      isBusy={pages.isFetchingNextPage}
      disabled={!pages.hasNextPage}
      onClick={() => {
        setClicked(true)
        void pages.fetchNextPage()
      }}
    >
      {pages.hasNextPage ? children : 'No more results'}
    </BusyButton>
  )
}
