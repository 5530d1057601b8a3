import { useState } from 'react'
import { BusyButton } from './BusyButton.tsx'
import type { Pages } from './use-pages.ts'

type MoreProps = {
  pages: Pick<Pages, 'hasNextPage' | 'isFetchingNextPage'> & { fetchNextPage: () => unknown }
  children: string
}

/** Loads the next page. Stays after the last page if it was used, so that keyboard focus isn't lost. */
export function MoreButton({ pages, children }: MoreProps) {
  const [wasPressed, setPressed] = useState(false)
  if (!pages.hasNextPage && !wasPressed) return null
  return (
    <BusyButton
      mt="sm"
      size="xs"
      variant="default"
      isBusy={pages.isFetchingNextPage}
      disabled={!pages.hasNextPage}
      onClick={() => {
        setPressed(true)
        void pages.fetchNextPage()
      }}
    >
      {pages.hasNextPage ? children : 'No more results'}
    </BusyButton>
  )
}
