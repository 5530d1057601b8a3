import { Group, Progress, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { client, unwrap } from '../../api/client.ts'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { Gate } from '../../parts/Gate.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { formatCount } from '../../parts/text/format.ts'
import { StatusText } from '../../parts/text/StatusText.tsx'
import { TimeText } from '../../parts/time/TimeText.tsx'
import { scopeText } from './period.ts'
import { hasCertificate, refreshIntegrity, type Run, starterOf } from './runs.ts'

/** The progress or the result of a run. */
export function RunState({ run }: { run: Run }) {
  if (run.status === 'RUNNING') return <RunProgress run={run} />
  return (
    <Stack gap={2} mt="sm" role="status">
      <Text size="sm" fw={500} component="span">
        <RunVerdict run={run} />
      </Text>
      <Text size="sm">{run.verdict}</Text>
      {run.finishedAt && (
        <Text size="xs" className="soft">
          {scopeText(run)} · <TimeText at={run.finishedAt} style="clock" /> · {starterOf(run)}
        </Text>
      )}
      {run.badEventId && (
        <AnchorLink
          to="/app/explorer"
          search={{ workspaceId: run.workspaceId, event: run.badEventId }}
        >
          Show event
        </AnchorLink>
      )}
      {hasCertificate(run) && <CertificateLink run={run} />}
    </Stack>
  )
}

export function CertificateLink({ run }: { run: Run }) {
  return (
    <AnchorLink to="/app/integrity/certificate/$runId" params={{ runId: run.id }}>
      Certificate
    </AnchorLink>
  )
}

function RunProgress({ run }: { run: Run }) {
  const cancel = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/integrity/runs/{runId}/cancel', {
          params: { path: { runId: run.id } },
        }),
      ),
    onSettled: refreshIntegrity,
  })
  const share = run.total === 0 ? 0 : Math.min(100, (run.checked / run.total) * 100)
  return (
    <Stack gap={4} mt="sm">
      <Progress value={share} aria-label="Verification progress" />
      <Group justify="space-between" align="flex-start" wrap="nowrap">
        <Text size="xs" className="soft numeric" role="status">
          {formatCount(run.checked)} of {formatCount(run.total)} events verified. You can leave this
          page.
        </Text>
        <Gate permission="integrity.verify" action="cancel verifications">
          <BusyButton
            size="compact-xs"
            variant="subtle"
            flex="none"
            isBusy={cancel.isPending}
            onClick={() => cancel.mutate()}
          >
            Cancel verification
          </BusyButton>
        </Gate>
      </Group>
      <ErrorBox error={cancel.error} />
    </Stack>
  )
}

export function RunVerdict({ run: { status, from } }: { run: Run }) {
  const subject = from === null ? 'The chain' : 'The period'
  if (status === 'HOLDS') return <StatusText tone="good">{`${subject} holds`}</StatusText>
  if (status === 'BROKEN') return <StatusText tone="bad">The chain is broken</StatusText>
  if (status === 'CANCELED') return <StatusText tone="neutral">Canceled</StatusText>
  if (status === 'RUNNING') return <StatusText tone="neutral">Running</StatusText>
  return <StatusText tone="warn">Failed</StatusText>
}
