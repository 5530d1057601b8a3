import { Group, SegmentedControl, Skeleton, Stack, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { client, unwrap } from '../../../api/client.ts'
import { EmptyState } from '../../../parts/message/EmptyState.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { LoadMoreButton } from '../../../parts/table/LoadMoreButton.tsx'
import { usePages } from '../../../parts/table/use-pages.ts'
import { DeliveryDrawer } from './DeliveryDrawer.tsx'
import { DeliveryHeader, DeliveryRow } from './DeliveryRow.tsx'
import { ResendEvents } from './ResendEvents.tsx'
import { RetryAll } from './RetryAll.tsx'
import { DELIVERY_STATUSES } from '../webhook-search.ts'
import type { Webhook } from '../webhook-types.ts'

const route = getRouteApi('/shell/app/webhooks/$webhookId')
const ALL = 'ALL'
const PAGE_DELIVERIES = 50
const REFRESH_MS = 5_000
const FILTERS = [
  { value: ALL, label: 'All' },
  { value: 'FAILED', label: 'Failed' },
  { value: 'RETRY_SCHEDULED', label: 'Retry scheduled' },
  { value: 'PENDING', label: 'Pending' },
  { value: 'SUCCEEDED', label: 'Succeeded' },
]

/** The deliveries of a webhook, newest first, optionally with one status. */
export function Deliveries({ webhook }: { webhook: Webhook }) {
  const { id: webhookId, status, workspaceId } = webhook
  const { status: filter, delivery: openId = null } = route.useSearch()
  const navigate = route.useNavigate()
  const open = (delivery: string | null) =>
    void navigate({
      search: { ...(filter && { status: filter }), ...(delivery !== null && { delivery }) },
      resetScroll: false,
    })
  const { pages, items: deliveries } = usePages(
    ['deliveries', webhookId, filter ?? ALL],
    (cursorQuery) => {
      const query = { limit: PAGE_DELIVERIES, ...(filter && { status: filter }), ...cursorQuery }
      const params = { path: { webhookId }, query }
      return unwrap(client.GET('/dashboard/webhooks/{webhookId}/deliveries', { params }))
    },
    { refetchMs: REFRESH_MS },
  )
  return (
    <>
      <Group justify="space-between" mb="sm">
        <SegmentedControl
          size="xs"
          data={FILTERS}
          value={filter ?? ALL}
          onChange={(value) => {
            const chosen = DELIVERY_STATUSES.find((name) => name === value)
            void navigate({ search: chosen ? { status: chosen } : {}, resetScroll: false })
          }}
          aria-label="Status"
        />
        <Group gap="xs">
          <RetryAll webhook={webhook} filter={filter ?? null} />
          <ResendEvents webhookId={webhookId} isDisabled={status === 'DISABLED'} />
        </Group>
      </Group>
      <ErrorBox error={pages.error} onRetry={pages.refetch} />
      {pages.isPending && <Skeleton height={200} radius="sm" />}
      {deliveries.length > 0 && <DeliveryHeader />}
      <Stack gap={0} role="list" aria-label="Deliveries, newest first">
        {deliveries.map((delivery) => (
          <DeliveryRow
            delivery={delivery}
            workspaceId={workspaceId}
            key={delivery.id}
            onOpen={() => open(delivery.id)}
          />
        ))}
      </Stack>
      {pages.data && deliveries.length === 0 && (
        <NoDeliveries isFiltered={filter !== undefined} hasOlder={pages.hasNextPage} />
      )}
      <LoadMoreButton pages={pages}>Show older deliveries</LoadMoreButton>
      <DeliveryDrawer webhook={webhook} deliveryId={openId} onClose={() => open(null)} />
    </>
  )
}

function NoDeliveries({ isFiltered, hasOlder }: { isFiltered: boolean; hasOlder: boolean }) {
  const [title, hint] = !isFiltered
    ? ['No deliveries yet', 'Send an event or a test, and its delivery appears here.']
    : hasOlder
      ? ['No matches among the newest deliveries', 'Show older deliveries to keep searching.']
      : ['No matching deliveries', 'Choose another status.']
  return (
    <EmptyState icon="webhook" title={title}>
      <Text size="sm" className="soft">
        {hint}
      </Text>
    </EmptyState>
  )
}
