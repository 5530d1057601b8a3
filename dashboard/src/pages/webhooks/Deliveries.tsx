import { Button, Group, SegmentedControl, Skeleton, Stack, Text } from '@mantine/core'
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { EmptyState } from '../../parts/EmptyState.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { DeliveryDrawer } from './DeliveryDrawer.tsx'
import { DeliveryRow } from './DeliveryRow.tsx'
import { RedeliverWindow } from './RedeliverWindow.tsx'
import type { DeliveryStatus, Webhook } from './webhook-types.ts'

const FILTERS = [
  { value: 'ALL', label: 'All' },
  { value: 'FAILED', label: 'Failed' },
  { value: 'RETRY_SCHEDULED', label: 'Retrying' },
  { value: 'PENDING', label: 'Waiting' },
  { value: 'SUCCEEDED', label: 'Delivered' },
]

/** Newest first, by state. */
export function Deliveries({ webhook: { id: webhookId, status } }: { webhook: Webhook }) {
  const [filter, setFilter] = useState('ALL')
  const [openId, setOpenId] = useState<string | null>(null)
  const pages = useInfiniteQuery({
    queryKey: ['deliveries', webhookId, filter],
    queryFn: ({ pageParam }) =>
      unwrap(
        client.GET('/dashboard/webhooks/{webhookId}/deliveries', {
          params: {
            path: { webhookId },
            query: {
              limit: 50,
              ...(filter !== 'ALL' && { status: filter as DeliveryStatus }),
              ...(pageParam !== null && { cursor: pageParam }),
            },
          },
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }) => nextCursor,
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  })
  const deliveries = pages.data?.pages.flatMap(({ data }) => data) ?? []
  return (
    <>
      <Group justify="space-between" mb="sm">
        <SegmentedControl
          size="xs"
          data={FILTERS}
          value={filter}
          onChange={setFilter}
          aria-label="State"
        />
        <RedeliverWindow webhookId={webhookId} isDisabled={status === 'DISABLED'} />
      </Group>
      <ErrorBox error={pages.error} />
      {pages.isPending && <Skeleton height={200} radius="sm" />}
      <Stack gap={0} role="list">
        {deliveries.map((delivery) => (
          <DeliveryRow
            delivery={delivery}
            key={delivery.id}
            onOpen={() => setOpenId(delivery.id)}
          />
        ))}
      </Stack>
      {pages.data && deliveries.length === 0 && (
        <EmptyState
          icon="webhook"
          title={filter === 'ALL' ? 'Nothing was sent yet' : 'None in this state'}
        >
          <Text size="sm" className="soft">
            {filter === 'ALL'
              ? 'Send an event, or a test, and it appears here.'
              : 'Choose another state.'}
          </Text>
        </EmptyState>
      )}
      {pages.hasNextPage && (
        <Group justify="center" mt="sm">
          <Button
            variant="subtle"
            size="xs"
            loading={pages.isFetchingNextPage}
            onClick={() => void pages.fetchNextPage()}
          >
            Older deliveries
          </Button>
        </Group>
      )}
      <DeliveryDrawer webhookId={webhookId} deliveryId={openId} onClose={() => setOpenId(null)} />
    </>
  )
}
