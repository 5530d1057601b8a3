import { Button, Group, SegmentedControl, Skeleton, Stack, Text } from '@mantine/core'
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { client, unwrap } from '../../api/client.ts'
import { EmptyState } from '../../parts/EmptyState.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { DeliveryDrawer } from './DeliveryDrawer.tsx'
import { DeliveryHead, DeliveryRow } from './DeliveryRow.tsx'
import { RedeliverWindow } from './RedeliverWindow.tsx'
import { DELIVERY_STATUSES } from './webhook-search.ts'
import type { Webhook } from './webhook-types.ts'

const route = getRouteApi('/shell/app/webhooks/$webhookId')
const ALL = 'ALL'
const FILTERS = [
  { value: ALL, label: 'All' },
  { value: 'FAILED', label: 'Failed' },
  { value: 'RETRY_SCHEDULED', label: 'Retrying' },
  { value: 'PENDING', label: 'Waiting' },
  { value: 'SUCCEEDED', label: 'Delivered' },
]

/** Newest first, by state. */
export function Deliveries({ webhook: { id: webhookId, status } }: { webhook: Webhook }) {
  const { status: filter, delivery: openId = null } = route.useSearch()
  const navigate = route.useNavigate()
  const open = (delivery: string | null) =>
    void navigate({
      search: { ...(filter && { status: filter }), ...(delivery !== null && { delivery }) },
      resetScroll: false,
    })
  const pages = useInfiniteQuery({
    queryKey: ['deliveries', webhookId, filter ?? ALL],
    queryFn: ({ pageParam }) =>
      unwrap(
        client.GET('/dashboard/webhooks/{webhookId}/deliveries', {
          params: {
            path: { webhookId },
            query: {
              limit: 50,
              ...(filter && { status: filter }),
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
          value={filter ?? ALL}
          onChange={(value) => {
            const chosen = DELIVERY_STATUSES.find((name) => name === value)
            void navigate({ search: chosen ? { status: chosen } : {}, resetScroll: false })
          }}
          aria-label="State"
        />
        <RedeliverWindow webhookId={webhookId} isDisabled={status === 'DISABLED'} />
      </Group>
      <ErrorBox error={pages.error} />
      {pages.isPending && <Skeleton height={200} radius="sm" />}
      {deliveries.length > 0 && <DeliveryHead />}
      <Stack gap={0} role="list" aria-label="Deliveries, newest first">
        {deliveries.map((delivery) => (
          <DeliveryRow delivery={delivery} key={delivery.id} onOpen={() => open(delivery.id)} />
        ))}
      </Stack>
      {pages.data && deliveries.length === 0 && (
        <EmptyState
          icon="webhook"
          title={filter === undefined ? 'Nothing was sent yet' : 'None in this state'}
        >
          <Text size="sm" className="soft">
            {filter === undefined
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
      <DeliveryDrawer webhookId={webhookId} deliveryId={openId} onClose={() => open(null)} />
    </>
  )
}
