import { ActionIcon, Alert, Button, Text } from '@mantine/core'
import { useClipboard } from '@mantine/hooks'
import { useMutation } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { DisabledReason } from '../../../parts/DisabledReason.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { Icon } from '../../../parts/Icon.tsx'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import type { Explorer } from '../use-explorer.ts'
import classes from './ViewBar.module.css'
import { isModified, isOnlyView, viewLink } from './view-state.ts'
import { viewPatch, viewQueryOf } from './view-query.ts'
import { refreshViews, useViews, type View } from './views.ts'

type BarProps = {
  explorer: Pick<Explorer, 'search' | 'filters' | 'timeWindow' | 'change'>
  /** The view whose link was copied when it was saved. */
  linkedId: string | null
}

/** The open view: whether the query still is that of the view, and the link to it. */
export function ViewBar({ explorer, linkedId }: BarProps) {
  const { search, change } = explorer
  const views = useViews()
  const view = views.data?.find(({ id }) => id === search.view)
  // A link to a view names only the view, so that it shows the current query of the view.
  const [isLink, setLink] = useState(() => isOnlyView(search))
  useEffect(() => {
    if (!isLink || !view) return
    setLink(false)
    change(viewPatch(view), { replace: true })
  }, [isLink, view, change])
  if (view) return <OpenView view={view} explorer={explorer} isLinked={linkedId === view.id} />
  if (!views.data || views.isFetching) return null
  return (
    <Alert
      color="yellow"
      mb="sm"
      title="This view isn’t available to you"
      withCloseButton
      closeButtonLabel="Close message"
      onClose={() => change({ view: null }, { replace: true })}
    >
      It may be private or deleted, or belong to a workspace that you can’t access. Ask the person
      who sent you the link, or an owner or admin of your company.
    </Alert>
  )
}

function OpenView({
  view,
  explorer,
  isLinked,
}: {
  view: View
  explorer: BarProps['explorer']
  isLinked: boolean
}) {
  const { search, filters, timeWindow, change } = explorer
  const save = useMutation({
    mutationFn: () =>
      unwrap(
        client.PATCH('/dashboard/explorer/views/{viewId}', {
          params: { path: { viewId: view.id } },
          body: {
            query: viewQueryOf(search, filters, timeWindow),
            workspaceId: filters.workspaceId ?? null,
          },
        }),
      ),
    onSuccess: refreshViews,
  })
  return (
    <section className={classes.bar} aria-label="Open view">
      <Text size="sm" fw={500} truncate>
        {view.name}
      </Text>
      <Text size="xs" className="soft">
        {view.visibility === 'PRIVATE' ? 'Only you' : 'Shared'}
      </Text>
      {isModified(search, view) && (
        <>
          <Text size="xs" component="span">
            <StatusText tone="warn">Modified</StatusText>
          </Text>
          <DisabledReason
            reason={view.mayChange ? null : 'Only its owner, an owner or an admin can change it.'}
          >
            <BusyButton
              size="compact-xs"
              variant="default"
              isBusy={save.isPending}
              onClick={() => save.mutate()}
            >
              Save changes
            </BusyButton>
          </DisabledReason>
          <Button size="compact-xs" variant="subtle" onClick={() => change(viewPatch(view))}>
            Reset
          </Button>
        </>
      )}
      <CopyLink view={view} isLinked={isLinked} />
      <ActionIcon
        size="sm"
        variant="subtle"
        color="gray"
        aria-label="Close view"
        title="Close view, keep its filters"
        onClick={() => change({ view: null })}
      >
        <Icon name="close" size={13} />
      </ActionIcon>
      <ErrorBox error={save.error} />
    </section>
  )
}

function CopyLink({ view, isLinked }: { view: View; isLinked: boolean }) {
  const { copied, copy } = useClipboard({ timeout: 1_500 })
  const isPrivate = view.visibility === 'PRIVATE'
  return (
    <>
      <Button
        size="compact-xs"
        variant="subtle"
        onClick={() => copy(viewLink(view.id))}
        leftSection={<Icon name={copied ? 'check' : 'link'} size={12} />}
      >
        Copy link
      </Button>
      <Text size="xs" className="soft" role="status">
        {(copied || isLinked) && (isPrivate ? 'Link copied. Only you can open it.' : 'Link copied')}
      </Text>
    </>
  )
}
