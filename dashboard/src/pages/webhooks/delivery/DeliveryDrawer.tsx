import { Drawer, Group, SimpleGrid, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { parseJson } from '../../../../../sdk/src/client/parse-json.ts'
import { client, unwrap } from '../../../api/client.ts'
import { isNotFound } from '../../../api/not-found.ts'
import { AnchorLink } from '../../../parts/AnchorLink.tsx'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { CopyableText } from '../../../parts/text/CopyableText.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { Gate } from '../../../parts/Gate.tsx'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import { AttemptBox } from './AttemptBox.tsx'
import { BodyText } from './BodyText.tsx'
import { DELIVERY_LABELS } from './delivery-text.ts'
import type { DeliveryDetail, Webhook } from '../webhook-types.ts'
import { refreshWebhook } from '../WebhookActions.tsx'

/** What was sent, and the response to each attempt. */
export function DeliveryDrawer({
  webhook: { id: webhookId, workspaceId },
  deliveryId,
  onClose,
}: {
  webhook: Webhook
  deliveryId: string | null
  onClose: () => void
}) {
  const detail = useQuery({
    queryKey: ['deliveries', webhookId, 'one', deliveryId],
    queryFn: () =>
      unwrap(
        client.GET('/dashboard/webhooks/{webhookId}/deliveries/{deliveryId}', {
          params: { path: { webhookId, deliveryId: deliveryId ?? '' } },
        }),
      ),
    enabled: deliveryId !== null,
    refetchInterval: 2_000,
  })
  return (
    <Drawer
      opened={deliveryId !== null}
      onClose={onClose}
      position="right"
      size="xl"
      title="Delivery"
    >
      {isNotFound(detail.error) ? (
        <Text size="sm">Delivery not found. It may have been deleted because of its age.</Text>
      ) : (
        <ErrorBox error={detail.error} />
      )}
      {detail.isPending && <Skeleton height={240} />}
      {detail.data && (
        <Detail delivery={detail.data} webhookId={webhookId} workspaceId={workspaceId} />
      )}
    </Drawer>
  )
}

function Detail({
  delivery,
  webhookId,
  workspaceId,
}: {
  delivery: DeliveryDetail
  webhookId: string
  workspaceId: string
}) {
  const { label, tone } = DELIVERY_LABELS[delivery.status]
  const again = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver', {
          params: { path: { webhookId, deliveryId: delivery.id } },
        }),
      ),
    onSettled: () => refreshWebhook(webhookId),
  })
  return (
    <Stack>
      <Group justify="space-between">
        <Stack gap={2}>
          <StatusText tone={tone}>{label}</StatusText>
          {delivery.failureReason && <Text size="sm">{delivery.failureReason}</Text>}
          {delivery.nextAttemptAt && (
            <Text size="sm" className="soft">
              Next attempt <TimeText at={delivery.nextAttemptAt} style="clock" />
            </Text>
          )}
        </Stack>
        <Group gap="md">
          {!delivery.isTest && (
            <AnchorLink to="/app/explorer" search={{ workspaceId, event: delivery.eventId }}>
              Open event
            </AnchorLink>
          )}
          <Gate permission="webhooks.manage" action="redeliver events">
            <BusyButton size="xs" isBusy={again.isPending} onClick={() => again.mutate()}>
              Redeliver event
            </BusyButton>
          </Gate>
        </Group>
      </Group>
      <ErrorBox error={again.error} />
      <Group gap="lg">
        <Field label="Delivery ID" text={delivery.id} />
        {!delivery.isTest && <Field label="Event ID" text={delivery.eventId} />}
        {delivery.eventSeq !== null && (
          <Field label="Event sequence number" text={String(delivery.eventSeq)} />
        )}
        <Field label="Sequence" text={String(delivery.sequence)} />
      </Group>
      <Exchange delivery={delivery} />
    </Stack>
  )
}

/** The request body, and what the receiver returned. */
function Exchange({ delivery }: { delivery: DeliveryDetail }) {
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <div>
        <Title order={3} size="sm" mb={4}>
          Request body
        </Title>
        <BodyText
          label="Request body"
          text={
            delivery.requestBody === null
              ? 'The event is archived, so its body is no longer available.'
              : prettyJson(delivery.requestBody)
          }
        />
      </div>
      <Stack gap="xs">
        <Title order={3} size="sm">
          Attempts
        </Title>
        {delivery.attempts.length === 0 && (
          <Text size="sm" className="soft">
            No attempts yet
          </Text>
        )}
        {delivery.attempts.toReversed().map((attempt) => (
          <AttemptBox attempt={attempt} key={attempt.attempt} />
        ))}
      </Stack>
    </SimpleGrid>
  )
}

function Field({ label, text }: { label: string; text: string }) {
  return (
    <Stack gap={0}>
      <Text size="xs" className="soft">
        {label}
      </Text>
      <CopyableText text={text} />
    </Stack>
  )
}

/** Formatted for display only. The body is sent without whitespace. */
function prettyJson(body: string): string {
  try {
    return JSON.stringify(parseJson(body), null, 2)
  } catch {
    return body
  }
}
