import { Badge, Button, Group, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { forgetSession, queryClient } from '../../../api/query-client.ts'
import type { paths } from '../../../api/schema.d.ts'
import { ConfirmDialog } from '../../../parts/dialog/ConfirmDialog.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import { browserText } from './browser-text.ts'
import classes from './SessionList.module.css'

type OwnSession =
  paths['/dashboard/sessions']['get']['responses'][200]['content']['application/json']['sessions'][number]

export function SessionList() {
  const sessions = useQuery({
    queryKey: ['sessions'],
    queryFn: () => unwrap(client.GET('/dashboard/sessions')),
  })
  const [isEnding, setEnding] = useState(false)
  const endAll = useMutation({
    mutationFn: () => unwrap(client.DELETE('/dashboard/sessions')),
    onSuccess: forgetSession,
  })
  return (
    <section aria-labelledby="sessions">
      <Group justify="space-between" mb="xs">
        <Title order={2} id="sessions">
          Sessions
        </Title>
        <Button size="xs" variant="default" onClick={() => setEnding(true)}>
          Sign out everywhere
        </Button>
      </Group>
      <ErrorBox error={sessions.error} />
      {sessions.isPending && <Skeleton height={64} radius="sm" />}
      <Stack gap={0} component="ul" p={0} m={0}>
        {sessions.data?.sessions.map((session) => (
          <SessionLine session={session} key={session.id} />
        ))}
      </Stack>
      <Text size="xs" className="soft" mt="xs">
        A session ends after 30 minutes of inactivity, and at most 12 hours after sign-in.
      </Text>
      <ConfirmDialog
        isOpen={isEnding}
        onClose={() => setEnding(false)}
        title="Sign out everywhere"
        consequence="This ends all your sessions immediately, including this one. You can sign in again with your password."
        name={null}
        action="Sign out everywhere"
        isBusy={endAll.isPending}
        error={endAll.error}
        onConfirm={() => endAll.mutate()}
      />
    </section>
  )
}

function SessionLine({ session }: { session: OwnSession }) {
  const { id, isCurrent, address, userAgent, createdAt, seenAt } = session
  const [isConfirming, setConfirming] = useState(false)
  const end = useMutation({
    mutationFn: () =>
      unwrap(
        client.DELETE('/dashboard/sessions/{sessionId}', { params: { path: { sessionId: id } } }),
      ),
    onSuccess: () =>
      isCurrent ? forgetSession() : queryClient.invalidateQueries({ queryKey: ['sessions'] }),
  })
  const browser = browserText(userAgent)
  return (
    <li className={classes.line}>
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        <div>
          <Group gap={6}>
            <Text size="sm" fw={500} title={userAgent}>
              {browser}
            </Text>
            {isCurrent && (
              <Badge size="sm" variant="default" tt="none">
                Current session
              </Badge>
            )}
          </Group>
          <Text size="xs" className="soft">
            {address}, signed in <TimeText at={createdAt} style="clock" />, last used{' '}
            <TimeText at={seenAt} style="clock" />
          </Text>
        </div>
        <Button
          size="compact-xs"
          variant="default"
          flex="none"
          onClick={() => setConfirming(true)}
          aria-label={`${isCurrent ? 'Sign out' : 'End session'}: ${browser} from ${address}`}
        >
          {isCurrent ? 'Sign out' : 'End session'}
        </Button>
      </Group>
      <ConfirmDialog
        isOpen={isConfirming}
        onClose={() => setConfirming(false)}
        title={isCurrent ? 'Sign out' : 'End session'}
        consequence={
          isCurrent
            ? 'This session ends immediately. You can sign in again with your password.'
            : `${browser} at ${address} is signed out immediately. Signing in again requires your password.`
        }
        name={null}
        action={isCurrent ? 'Sign out' : 'End session'}
        isBusy={end.isPending}
        error={end.error}
        onConfirm={() => end.mutate()}
      />
    </li>
  )
}
