import { List, Paper, Select, Stack, Text, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import { useSigned } from '../../shell/session-context.tsx'
import { FirstEventCommand, FirstEventWatch } from '../explorer/FirstEvent.tsx'
import { expiryOf } from '../keys/expiry.ts'
import { refreshKeys } from '../keys/keys.ts'

/** Guides a new company to its first event. */
export function WelcomePage() {
  const { session, workspace, may } = useSigned()
  const customers = session.workspaces.filter(({ kind }) => kind === 'CUSTOMER')
  const [chosenId, chooseId] = useState<string | null>(null)
  const workspaceId = chosenId ?? workspace?.id ?? customers[0]?.id ?? null
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
          Your programs tell Annals who did what to which thing. It keeps each event in a chain of
          hashes, so that nobody can change or remove one without it being seen. Here you find
          events, hand them on and prove that none is missing.
        </Text>
        <Paper withBorder p="md" component="section" aria-label="Send a first event">
          <Stack gap="sm">
            <Title order={2}>Send a first event</Title>
            {customers.length > 1 && (
              <Select
                label="Workspace"
                maw={320}
                allowDeselect={false}
                disabled={secret !== null}
                data={customers.map(({ id, name }) => ({ value: id, label: name }))}
                value={workspaceId}
                onChange={chooseId}
              />
            )}
            {may('keys.manage') ? (
              <KeyStep
                isMade={secret !== null}
                isBusy={create.isPending}
                onMake={() => workspaceId !== null && create.mutate(workspaceId)}
              />
            ) : (
              <Text size="sm" className="soft">
                An owner or admin of {session.company.name} makes the key that goes in here.
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
  isMade,
  isBusy,
  onMake,
}: {
  isMade: boolean
  isBusy: boolean
  onMake: () => void
}) {
  if (isMade) {
    return (
      <Text size="sm" role="status">
        The key stands in the command now. It is shown once, works for 90 days, and is called “First
        key” under{' '}
        <AnchorLink underline="always" to="/app/keys">
          Keys
        </AnchorLink>
        .
      </Text>
    )
  }
  return (
    <Text size="sm">
      <BusyButton size="compact-sm" onClick={onMake} isBusy={isBusy} mr={8}>
        Make a key
      </BusyButton>
      to fill in this command, or use your own.
    </Text>
  )
}

function NextSteps() {
  return (
    <section aria-label="Then">
      <Title order={2} mb={6}>
        Then
      </Title>
      <List size="sm" spacing={4}>
        <List.Item>
          Look for events in the{' '}
          <AnchorLink underline="always" to="/app/explorer">
            explorer
          </AnchorLink>
          , and save what you often look for as a view.
        </List.Item>
        <List.Item>
          Take them out as a file under{' '}
          <AnchorLink underline="always" to="/app/exports">
            Exports
          </AnchorLink>
          , or have each sent on by a{' '}
          <AnchorLink underline="always" to="/app/webhooks">
            webhook
          </AnchorLink>
          .
        </List.Item>
        <List.Item>
          Prove that nothing was changed under{' '}
          <AnchorLink underline="always" to="/app/integrity">
            Integrity
          </AnchorLink>
          .
        </List.Item>
      </List>
    </section>
  )
}
