import { Button, Group, Stack, Text, TextInput, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { queryClient } from '../../../api/query-client.ts'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ConfirmDialog } from '../../../parts/dialog/ConfirmDialog.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { Gate } from '../../../parts/Gate.tsx'
import { HEADERS_NOTE, SECRET_LABEL_NOTE } from '../delivery/delivery-text.ts'
import { draftOf, filterOf } from './filter-draft.ts'
import { FilterFields } from './FilterFields.tsx'
import { type HeaderDraft, HeaderFields, headersOf } from './HeaderFields.tsx'
import { SecretRotation } from './SecretRotation.tsx'
import { urlError } from './url-error.ts'
import type { Webhook, WebhookChange } from '../webhook-types.ts'
import { refreshWebhook } from '../WebhookActions.tsx'

export function WebhookSettings({ webhook }: { webhook: Webhook }) {
  const { name, url, secretLabel, filter, headerNames, updatedAt } = webhook
  return (
    <Stack gap="xl" maw={560}>
      <MainForm webhook={webhook} key={JSON.stringify([name, url, secretLabel])} />
      <FilterForm webhook={webhook} key={JSON.stringify(filter)} />
      <HeadersForm webhook={webhook} key={`${headerNames.join()} ${updatedAt}`} />
      <SecretRotation webhook={webhook} />
      <Deletion webhook={webhook} />
    </Stack>
  )
}

/** One part of the settings. `change` is what it saves, or null if nothing is changed. */
function SettingsForm({
  webhookId,
  title,
  action,
  change,
  children,
}: {
  webhookId: string
  title: string
  action: string
  change: WebhookChange | null
  children: (error: Error | null) => ReactNode
}) {
  const save = useMutation({
    mutationFn: (body: WebhookChange) =>
      unwrap(
        client.PATCH('/dashboard/webhooks/{webhookId}', { params: { path: { webhookId } }, body }),
      ),
    onSuccess: () => refreshWebhook(webhookId),
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (change) save.mutate(change)
      }}
    >
      <Title order={2} mb={4}>
        {title}
      </Title>
      <Stack gap="xs">
        {children(save.error)}
        {urlError(save.error) === null && <ErrorBox error={save.error} />}
        <Group>
          <Gate permission="webhooks.manage" action="change webhooks">
            <BusyButton type="submit" size="xs" disabled={!change} isBusy={save.isPending}>
              {action}
            </BusyButton>
          </Gate>
        </Group>
      </Stack>
    </form>
  )
}

function MainForm({ webhook: { id, name, url, secretLabel, headerNames } }: { webhook: Webhook }) {
  const saved = { name: name ?? '', url, label: secretLabel ?? '' }
  const [typed, setTyped] = useState(saved)
  const isChanged =
    typed.name !== saved.name || typed.url !== saved.url || typed.label !== saved.label
  const change = { name: typed.name || null, url: typed.url, secretLabel: typed.label || null }
  const losesHeaders = headerNames.length > 0 && originOf(typed.url) !== originOf(url)
  return (
    <SettingsForm
      webhookId={id}
      title="General"
      action="Save settings"
      change={isChanged ? change : null}
    >
      {(error) => (
        <>
          <TextInput
            label="Name"
            maxLength={64}
            value={typed.name}
            onChange={(event) => setTyped({ ...typed, name: event.currentTarget.value })}
          />
          <TextInput
            label="URL"
            description="Used for all further attempts, including those of pending deliveries."
            required
            value={typed.url}
            onChange={(event) => setTyped({ ...typed, url: event.currentTarget.value })}
            error={urlError(error)}
          />
          {losesHeaders && (
            <Text size="sm">
              The URL has another origin, so saving removes the extra headers. Set them again
              afterwards if the new receiver needs them.
            </Text>
          )}
          <TextInput
            label="Secret label"
            description={SECRET_LABEL_NOTE}
            maxLength={64}
            value={typed.label}
            onChange={(event) => setTyped({ ...typed, label: event.currentTarget.value })}
          />
        </>
      )}
    </SettingsForm>
  )
}

/** Null while the text isn't a URL. */
function originOf(url: string): string | null {
  return URL.parse(url)?.origin ?? null
}

function FilterForm({ webhook: { id, filter } }: { webhook: Webhook }) {
  const [draft, setDraft] = useState(draftOf(filter))
  const typed = filterOf(draft)
  const isChanged = JSON.stringify(draftOf(typed)) !== JSON.stringify(draftOf(filter))
  return (
    <SettingsForm
      webhookId={id}
      title="Filter"
      action="Save filter"
      change={isChanged ? { filter: typed } : null}
    >
      {() => (
        <>
          <FilterFields draft={draft} onChange={setDraft} />
          <Text size="sm" className="soft">
            A change applies to events that are stored from now on.
          </Text>
        </>
      )}
    </SettingsForm>
  )
}

function HeadersForm({ webhook: { id, headerNames } }: { webhook: Webhook }) {
  const [drafts, setDrafts] = useState<HeaderDraft[]>([])
  const hasHeaders = headerNames.length > 0
  const isRemoval = drafts.length === 0 && hasHeaders
  return (
    <SettingsForm
      webhookId={id}
      title="Extra headers"
      action={isRemoval ? 'Remove headers' : 'Save headers'}
      change={drafts.length > 0 || hasHeaders ? { headers: headersOf(drafts) } : null}
    >
      {() => (
        <>
          <Text size="sm" className="soft">
            {HEADERS_NOTE}
          </Text>
          <Text size="sm">
            {hasHeaders
              ? `Current headers: ${headerNames.join(', ')}. Saving replaces all of them, so enter every value again.`
              : 'There are no extra headers.'}
          </Text>
          <HeaderFields drafts={drafts} onChange={setDrafts} />
        </>
      )}
    </SettingsForm>
  )
}

function Deletion({ webhook: { id, url } }: { webhook: Webhook }) {
  const [isOpen, setOpen] = useState(false)
  const navigate = useNavigate()
  const remove = useMutation({
    mutationFn: () =>
      unwrap(
        client.DELETE('/dashboard/webhooks/{webhookId}', { params: { path: { webhookId: id } } }),
      ),
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: ['webhooks'] })
      await navigate({ to: '/app/webhooks' })
    },
  })
  const { host } = new URL(url)
  return (
    <section>
      <Title order={2} mb={4}>
        Delete webhook
      </Title>
      <Text size="sm" className="soft" mb="xs">
        To stop it temporarily, disable it instead.
      </Text>
      <Gate permission="webhooks.manage" action="delete webhooks">
        <Button size="xs" color="red" variant="outline" onClick={() => setOpen(true)}>
          Delete webhook
        </Button>
      </Gate>
      <ConfirmDialog
        isOpen={isOpen}
        onClose={() => setOpen(false)}
        title="Delete webhook"
        consequence="Annals stops sending to this webhook and deletes its deliveries, including pending ones."
        name={host}
        action="Delete webhook"
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
      />
    </section>
  )
}
