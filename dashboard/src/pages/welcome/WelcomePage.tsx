import { List, Paper, Stack, Text, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import { WorkspaceSelect } from '../../parts/WorkspaceSelect.tsx'
import { useSession } from '../../api/session-context.tsx'
import { FirstEventCommand, FirstEventWatch } from '../explorer/list/FirstEvent.tsx'
import { expiryOf } from '../keys/expiry.ts'
import { refreshKeys } from '../keys/keys.ts'

/** Guides a new company to its first event. */
export function WelcomePage() {
  const { session, workspace, hasPermission } = useSession()
  const customers = session.workspaces.filter(({ kind }) => kind === 'CUSTOMER')
  const [chosenId, chooseId] = useState<string | null>(null)
  const workspaceId = chosenId ?? workspace?.id ?? null
  const create = useMutation({
    mutationFn: (id: string) =>
      unwrap(
        client.POST('/dashboard/keys', {
          body: {
            name: 'First key',
            scope: 'WORKSPACE',
            workspaceId: id,
            expiresAt: expiryOf('90', Date.now()),
          },
        }),
      ),
    onSuccess: refreshKeys,
  })
  const secret = create.data?.secret ?? null
  return (
    <>
      <PageHeader title="Welcome" />
      <Stack maw={720} gap="lg">
        <Text>
          Your programs send Annals events: who did what to which resource. Annals stores them in a
          tamper-evident ledger that you can search, export, stream to webhooks, and verify.
        </Text>
        <Paper withBorder p="md" component="section" aria-label="Send your first event">
          <Stack gap="sm">
            <Title order={2}>Send your first event</Title>
            {customers.length > 1 && (
              <WorkspaceSelect
                value={workspaceId}
                onChange={chooseId}
                isDisabled={secret !== null}
              />
            )}
            {hasPermission('keys.manage') ? (
              <KeyStep
                isCreated={secret !== null}
                isBusy={create.isPending}
                isDisabled={workspaceId === null}
                onCreate={() => workspaceId !== null && create.mutate(workspaceId)}
              />
            ) : (
              <Text size="sm" className="soft">
                Ask an owner or admin of {session.company.name} for a key to use in this command.
              </Text>
            )}
            <ErrorBox error={create.error} />
            <FirstEventCommand secret={secret} />
            <FirstEventWatch workspaceId={workspaceId ?? undefined} />
          </Stack>
        </Paper>
        <NextSteps />
      </Stack>
    </>
  )
}

function KeyStep({
  isCreated,
  isBusy,
  isDisabled,
  onCreate,
}: {
  isCreated: boolean
  isBusy: boolean
  isDisabled: boolean
  onCreate: () => void
}) {
  if (isCreated) {
    return (
      <Text size="sm" role="status">
        The command now contains your new key, which is shown only once. It is valid for 90 days and
        named “First key” in{' '}
        <AnchorLink underline="always" to="/app/keys">
          Keys
        </AnchorLink>
        .
      </Text>
    )
  }
  return (
    <Text size="sm">
      <BusyButton size="compact-sm" onClick={onCreate} isBusy={isBusy} disabled={isDisabled} mr={8}>
        Create key
      </BusyButton>
      to complete this command, or use an existing key.
    </Text>
  )
}

function NextSteps() {
  return (
    <section aria-label="Next steps">
      <Title order={2} mb={6}>
        Next steps
      </Title>
      <List size="sm" spacing={4}>
        <List.Item>
          Search events in the{' '}
          <AnchorLink underline="always" to="/app/explorer">
            explorer
          </AnchorLink>
          , and save common queries as views.
        </List.Item>
        <List.Item>
          Download events as a file in{' '}
          <AnchorLink underline="always" to="/app/exports">
            Exports
          </AnchorLink>
          , or send them to your endpoint with a{' '}
          <AnchorLink underline="always" to="/app/webhooks">
            webhook
          </AnchorLink>
          .
        </List.Item>
        <List.Item>
          Verify that nothing was changed in{' '}
          <AnchorLink underline="always" to="/app/integrity">
            Integrity
          </AnchorLink>
          .
        </List.Item>
      </List>
    </section>
  )
}
