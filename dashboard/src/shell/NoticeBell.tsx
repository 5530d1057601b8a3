import { Button } from '@mantine/core'
import { lazy, Suspense, useState } from 'react'
import { useUnreadCount } from '../api/notices.ts'
import { whenConnected } from '../api/when-connected.ts'
import { Icon } from '../parts/Icon.tsx'
import { useRestoreFocus } from '../parts/dialog/use-restore-focus.ts'

// Loaded when the member opens it.
const NoticePanel = lazy(
  whenConnected(async () => ({ default: (await import('./notices/NoticePanel.tsx')).NoticePanel })),
)

/** Shows how many notices the member hasn't read, and opens their list. */
export function NoticeBell() {
  const unread = useUnreadCount()
  const [isOpen, setOpen] = useState(false)
  useRestoreFocus(isOpen)
  return (
    <>
      <Button
        variant="subtle"
        color="gray"
        size="xs"
        px={8}
        flex="none"
        aria-label={unread === 0 ? 'Notices' : `Notices, ${unread} unread`}
        aria-haspopup="dialog"
        leftSection={<Icon name="bell" />}
        styles={{ section: { marginInlineEnd: unread === 0 ? 0 : 4 } }}
        onClick={() => setOpen(true)}
      >
        {unread > 0 && <span className="numeric">{unread}</span>}
      </Button>
      {isOpen && (
        <Suspense>
          <NoticePanel onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  )
}
