import { Button, Group, List, Skeleton, Stack, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { formatCount } from '../../../parts/text/format.ts'
import { retryAll, type RetryPreview, type RetryProgress, retryCounts } from './retry-run.ts'
import type { DeliveryStatus } from '../webhook-types.ts'
import { refreshWebhook } from '../WebhookActions.tsx'

const GROUPS_SHOWN = 5

/** Shows what a retry would send, and then what it did send. */
export function RetryForm({
  webhookId,
  filter,
  onClose,
}: {
  webhookId: string
  filter: DeliveryStatus | null
  onClose: () => void
}) {
  const preview = useQuery({
    queryKey: ['retry-preview', webhookId],
    queryFn: () =>
      unwrap(
        client.GET('/dashboard/webhooks/{webhookId}/retry', { params: { path: { webhookId } } }),
      ),
    // The counts belong to the moment that the preview names.
    gcTime: 0,
    refetchOnWindowFocus: false,
  })
  const [progress, setProgress] = useState<RetryProgress>({ queued: 0, archived: 0 })
  const retry = useMutation({
    mutationFn: (shown: RetryPreview) =>
      retryAll(webhookId, { preview: shown, filter, onProgress: setProgress }),
    onSettled: () => refreshWebhook(webhookId),
  })
  if (!preview.data) {
    return preview.error ? <ErrorBox error={preview.error} /> : <Skeleton height={90} />
  }
  const { data } = preview
  const counts = retryCounts(data, filter)
  return (
    <Stack>
      {retry.isIdle && <Preview preview={data} filter={filter} />}
      {retry.isPending && (
        <Text size="sm" role="status">
          Queued {formatCount(progress.queued)} of {formatCount(counts.total)}…
        </Text>
      )}
      {(retry.isSuccess || retry.isError) && (
        <Result
          progress={progress}
          total={counts.total}
          isCut={data.isCut}
          isDone={retry.isSuccess}
        />
      )}
      <ErrorBox error={retry.error} />
      <Group justify="flex-end">
        {retry.isSuccess || retry.isError || counts.total === 0 ? (
          <Button onClick={onClose}>Close</Button>
        ) : (
          <>
            <Button variant="default" onClick={onClose}>
              Go back
            </Button>
            <BusyButton isBusy={retry.isPending} onClick={() => retry.mutate(data)} data-autofocus>
              Retry {pluralizeDeliveries(counts.total)}
            </BusyButton>
          </>
        )}
      </Group>
    </Stack>
  )
}

function Preview({ preview, filter }: { preview: RetryPreview; filter: DeliveryStatus | null }) {
  const { failed, waiting, total, groups } = retryCounts(preview, filter)
  if (total === 0) return <Text size="sm">{nothingText(filter)}</Text>
  const parts = [
    ...(failed > 0 ? [`${formatCount(failed)} failed`] : []),
    ...(waiting > 0 ? [`${formatCount(waiting)} waiting for a retry`] : []),
  ]
  return (
    <>
      <Text size="sm">
        Annals sends these deliveries again as soon as possible: {parts.join(', ')}.
        {preview.isCut && ' There may be more. Only the first 100,000 of each are counted.'}
      </Text>
      <div>
        <Text size="sm" fw={500}>
          Last responses
        </Text>
        <List size="sm" withPadding>
          {groups.slice(0, GROUPS_SHOWN).map(({ text, count }) => (
            <List.Item key={text}>
              {text}: {pluralizeDeliveries(count)}
            </List.Item>
          ))}
        </List>
      </div>
    </>
  )
}

function nothingText(filter: DeliveryStatus | null): string {
  if (filter === null) return 'No deliveries failed or wait for a retry.'
  return filter === 'FAILED' ? 'No deliveries failed.' : 'No deliveries wait for a retry.'
}

function Result({
  progress: { queued, archived },
  total,
  isCut,
  isDone,
}: {
  progress: RetryProgress
  total: number
  isCut: boolean
  /** False if an error ended it early. */
  isDone: boolean
}) {
  const others = total - queued - archived
  return (
    <Stack gap={4} role="status">
      <Text size="sm" fw={500}>
        {pluralizeDeliveries(queued)} queued
      </Text>
      {archived > 0 && (
        <Text size="sm">
          {pluralizeDeliveries(archived)} can’t be sent again, because their events are archived.
        </Text>
      )}
      {isDone && others > 0 && (
        <Text size="sm">
          {pluralizeDeliveries(others)} changed since the preview and{' '}
          {others === 1 ? 'was' : 'were'} left alone.
        </Text>
      )}
      {!isDone && others > 0 && (
        <Text size="sm">{pluralizeDeliveries(others)} not processed because of an error.</Text>
      )}
      {isDone && isCut && <Text size="sm">There may be more. Retry again to include them.</Text>}
    </Stack>
  )
}

function pluralizeDeliveries(count: number): string {
  return `${formatCount(count)} ${count === 1 ? 'delivery' : 'deliveries'}`
}
