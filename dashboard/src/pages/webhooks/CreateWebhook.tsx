import {
  Button,
  Code,
  Fieldset,
  Group,
  PasswordInput,
  Select,
  Stack,
  Text,
  TextInput,
} from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { SecretBox } from '../../parts/dialog/SecretBox.tsx'
import { SecretDialog } from '../../parts/dialog/SecretDialog.tsx'
import { WorkspaceSelect } from '../../parts/WorkspaceSelect.tsx'
import { urlError } from './settings/url-error.ts'
import { HEADERS_NOTE, SECRET_LABEL_NOTE, SECRET_STORAGE_NOTE } from './delivery/delivery-text.ts'
import { draftOf, type FilterDraft, filterOf } from './settings/filter-draft.ts'
import { FilterFields } from './settings/FilterFields.tsx'
import { type HeaderDraft, HeaderFields, headersOf } from './settings/HeaderFields.tsx'
import { useSession } from '../../api/session-context.tsx'

export function CreateWebhook({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  return (
    <SecretDialog isOpen={isOpen} onClose={onClose} title="Create webhook">
      <CreateForm onClose={onClose} />
    </SecretDialog>
  )
}

type Draft = {
  /** Empty until the member has chosen one. */
  workspaceId: string
  projectId: string | null
  url: string
  name: string
  filter: FilterDraft
  headers: HeaderDraft[]
  label: string
  custom: string
}
type DraftProps = { draft: Draft; onChange: (change: Partial<Draft>) => void }

function useCreate({ workspaceId, url, name, projectId, filter, headers, label, custom }: Draft) {
  return useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/webhooks', {
          body: {
            workspaceId,
            url,
            projectId,
            name: name || null,
            filter: filterOf(filter),
            headers: headersOf(headers),
            ...(label !== '' && { secretLabel: label }),
            ...(custom !== '' && { customSecret: custom }),
          },
        }),
      ),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['webhooks'] }),
  })
}

function CreateForm({ onClose }: { onClose: () => void }) {
  const { workspace } = useSession()
  const [draft, setDraft] = useState<Draft>({
    workspaceId: workspace?.id ?? '',
    projectId: null,
    url: '',
    name: '',
    filter: draftOf(null),
    headers: [],
    label: '',
    custom: '',
  })
  const change = (changed: Partial<Draft>) => setDraft({ ...draft, ...changed })
  const create = useCreate(draft)
  if (create.data) return <NewSecret secret={create.data.secret} onDone={onClose} />
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        create.mutate()
      }}
    >
      <Stack>
        <TextInput
          label="URL"
          description="Receives a POST request for each event. Must be HTTPS unless your operator allows other URLs."
          placeholder="https://example.com/annals"
          required
          data-autofocus
          value={draft.url}
          onChange={(event) => change({ url: event.currentTarget.value })}
          error={urlError(create.error)}
        />
        <TextInput
          label="Name"
          maxLength={64}
          value={draft.name}
          onChange={(event) => change({ name: event.currentTarget.value })}
        />
        <WorkspaceSelect
          value={draft.workspaceId || null}
          onChange={(value) => change({ workspaceId: value ?? '', projectId: null })}
        />
        <SelectionFields draft={draft} onChange={change} />
        <CredentialFields draft={draft} onChange={change} />
        {urlError(create.error) === null && <ErrorBox error={create.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <BusyButton type="submit" isBusy={create.isPending} disabled={draft.workspaceId === ''}>
            Create webhook
          </BusyButton>
        </Group>
      </Stack>
    </form>
  )
}

function SelectionFields({ draft, onChange }: DraftProps) {
  return (
    <>
      <ProjectSelect
        workspaceId={draft.workspaceId}
        value={draft.projectId}
        onChange={(projectId) => onChange({ projectId })}
      />
      <Fieldset legend="Filter">
        <FilterFields draft={draft.filter} onChange={(filter) => onChange({ filter })} />
      </Fieldset>
    </>
  )
}

function ProjectSelect({
  workspaceId,
  value,
  onChange,
}: {
  workspaceId: string
  value: string | null
  onChange: (id: string | null) => void
}) {
  const projects = useQuery({
    queryKey: ['projects', workspaceId],
    queryFn: () =>
      unwrap(
        client.GET('/dashboard/workspaces/{workspaceId}/projects', {
          params: { path: { workspaceId } },
        }),
      ),
    enabled: workspaceId !== '',
  })
  return (
    <Select
      label="Project"
      description="Send only events of this project."
      placeholder="All projects"
      clearable
      data={(projects.data?.projects ?? []).map(({ id, name }) => ({ value: id, label: name }))}
      value={value}
      onChange={onChange}
    />
  )
}

function CredentialFields({ draft, onChange }: DraftProps) {
  return (
    <>
      <Fieldset legend="Extra headers">
        <Text size="sm" className="soft" mb="xs">
          {HEADERS_NOTE}
        </Text>
        <HeaderFields drafts={draft.headers} onChange={(headers) => onChange({ headers })} />
      </Fieldset>
      <TextInput
        label="Secret label"
        description={SECRET_LABEL_NOTE}
        maxLength={64}
        value={draft.label}
        onChange={(event) => onChange({ label: event.currentTarget.value })}
      />
      <PasswordInput
        label="Custom secret"
        description="Leave empty to generate a strong secret."
        autoComplete="off"
        value={draft.custom}
        onChange={(event) => onChange({ custom: event.currentTarget.value })}
      />
    </>
  )
}

function NewSecret({ secret, onDone }: { secret: string; onDone: () => void }) {
  return (
    <Stack>
      <SecretBox label="Signing secret" secret={secret} storageNote={SECRET_STORAGE_NOTE}>
        <Text size="sm">
          Each delivery has the header <Code>x-service-signature: v1=&lt;hex&gt;</Code>, where
          &lt;hex&gt; is the HMAC-SHA-256 of the raw body in hex. To verify a delivery, compute the
          same value, prefix it with v1=, and compare. Use the whole secret as the key
          {secret.startsWith('whsec_') && ', including whsec_'}.
        </Text>
      </SecretBox>
      <Group justify="flex-end">
        <Button onClick={onDone}>I’ve copied it</Button>
      </Group>
    </Stack>
  )
}
