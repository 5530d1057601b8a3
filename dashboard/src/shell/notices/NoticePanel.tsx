import { Drawer, Skeleton, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { client, unwrap } from '../../api/client.ts'
import { NOTICE_LIST_KEY, refreshNotices } from '../../api/notices.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { EmptyState } from '../../parts/message/EmptyState.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { LoadMoreButton } from '../../parts/table/LoadMoreButton.tsx'
import { usePages } from '../../parts/table/use-pages.ts'
import classes from './NoticePanel.module.css'
import { NoticeRow } from './NoticeRow.tsx'

const PAGE_NOTICES = 30
/** What one request can mark as read. */
const READ_MAX = 200

/** The notices of the last 90 days. */
export function NoticePanel({ onClose }: { onClose: () => void }) {
  const { pages, items } = usePages(NOTICE_LIST_KEY, (cursorQuery) => {
    const query = { limit: PAGE_NOTICES, ...cursorQuery }
    return unwrap(client.GET('/dashboard/notices', { params: { query } }))
  })
  const markRead = useMutation({ mutationFn: sendRead, onSettled: refreshNotices })
  const unreadIds = items.flatMap(({ id, isRead }) => (isRead ? [] : [id]))
  return (
    <Drawer opened onClose={onClose} position="right" size="md" title="Notices">
      <ErrorBox error={pages.error ?? markRead.error} />
      {pages.isPending && <Skeleton height={160} />}
      {pages.isSuccess && items.length === 0 && (
        <EmptyState icon="bell" title="No notices">
          <Text size="sm" ta="center" className="soft">
            Notices tell you about failing webhooks, broken chains, failed exports and, as an owner
            or admin, about keys that expire and limits that are almost used.
          </Text>
        </EmptyState>
      )}
      {items.length > 0 && (
        <BusyButton
          size="xs"
          variant="default"
          isBusy={markRead.isPending}
          disabled={unreadIds.length === 0}
          onClick={() => markRead.mutate(unreadIds.slice(0, READ_MAX))}
        >
          {pages.hasNextPage ? 'Mark shown as read' : 'Mark all as read'}
        </BusyButton>
      )}
      <ul className={classes.list}>
        {items.map((notice) => (
          <NoticeRow
            key={notice.id}
            notice={notice}
            onOpen={() => {
              if (!notice.isRead) markRead.mutate([notice.id])
              onClose()
            }}
          />
        ))}
      </ul>
      <LoadMoreButton pages={pages}>Load older notices</LoadMoreButton>
    </Drawer>
  )
}

function sendRead(noticeIds: string[]): Promise<unknown> {
  return unwrap(client.POST('/dashboard/notices/read', { body: { noticeIds } }))
}
