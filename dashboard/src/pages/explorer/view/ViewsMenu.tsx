import { ActionIcon, Button, Popover, ScrollArea, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { lazy, Suspense, useState } from 'react'
import { whenConnected } from '../../../api/when-connected.ts'
import { ErrorBox } from '../../../parts/ErrorBox.tsx'
import { focusOpener } from '../../../parts/focus-opener.ts'
import { Icon } from '../../../parts/Icon.tsx'
import { DisabledReason } from '../../../parts/DisabledReason.tsx'
import { useRestoreFocus } from '../../../parts/use-restore-focus.ts'
import type { Change } from '../use-explorer.ts'
import { useViews, type View, viewPatch } from './views.ts'
import classes from './ViewsMenu.module.css'

// Loaded when the menu opens.
const EditView = lazy(
  whenConnected(async () => ({ default: (await import('./EditView.tsx')).EditView })),
)
const DeleteView = lazy(
  whenConnected(async () => ({ default: (await import('./DeleteView.tsx')).DeleteView })),
)

/** The views that the member sees. Choosing one writes its query to the URL. */
export function ViewsMenu({ viewId, change }: { viewId: string | undefined; change: Change }) {
  const [isOpen, { toggle, close }] = useDisclosure(false)
  const [wasOpened, setOpened] = useState(false)
  const [viewToDelete, setViewToDelete] = useState<View | null>(null)
  const [edited, setEdited] = useState<View | null>(null)
  useRestoreFocus(viewToDelete !== null || edited !== null)
  const views = useViews()
  const current = views.data?.find(({ id }) => id === viewId)
  return (
    <>
      <Popover
        opened={isOpen}
        onDismiss={close}
        onOpen={() => setOpened(true)}
        position="bottom-end"
        width={300}
        shadow="md"
        trapFocus
        returnFocus
      >
        <Popover.Target>
          <Button
            size="xs"
            variant="default"
            onClick={toggle}
            rightSection={<Icon name="down" size={12} />}
          >
            <Text span size="xs" maw={140} truncate>
              {current?.name ?? 'Views'}
            </Text>
          </Button>
        </Popover.Target>
        <Popover.Dropdown p={4} aria-label="Views">
          <ViewLines
            views={views}
            viewId={viewId}
            onRun={(view) => {
              change(viewPatch(view))
              close()
            }}
            onEdit={(view) => {
              setEdited(view)
              close()
            }}
            onDelete={(view) => {
              setViewToDelete(view)
              close()
            }}
          />
        </Popover.Dropdown>
      </Popover>
      {wasOpened && (
        <Suspense>
          <EditView view={edited} onClose={() => setEdited(null)} onRejected={setEdited} />
          <DeleteView
            view={viewToDelete}
            onClose={() => setViewToDelete(null)}
            onRejected={setViewToDelete}
            onDeleted={(id) => id === viewId && change({ view: null }, { replace: true })}
          />
        </Suspense>
      )}
    </>
  )
}

function ViewLines({
  views,
  viewId,
  onRun,
  onEdit,
  onDelete,
}: {
  views: ReturnType<typeof useViews>
  viewId: string | undefined
  onRun: (view: View) => void
  onEdit: (view: View) => void
  onDelete: (view: View) => void
}) {
  return (
    <>
      <ErrorBox error={views.error} />
      {views.data?.length === 0 && (
        <Text size="sm" className="soft" p="xs">
          No saved views yet. Set filters, then select “Save view”.
        </Text>
      )}
      <ScrollArea.Autosize mah={360}>
        {views.data?.map((view) => (
          <ViewLine
            key={view.id}
            view={view}
            isCurrent={view.id === viewId}
            onRun={() => onRun(view)}
            onEdit={() => onEdit(view)}
            onDelete={() => onDelete(view)}
          />
        ))}
      </ScrollArea.Autosize>
    </>
  )
}

const UNUSABLE_VIEW_TEXT =
  'This view was saved by another version of Annals. Set its filters again and save a new view.'

type LineProps = {
  view: View
  isCurrent: boolean
  onRun: () => void
  onEdit: () => void
  onDelete: () => void
}

function ViewLine({ view, isCurrent, onRun, onEdit, onDelete }: LineProps) {
  const { name, visibility, owner, isUsable, mayChange } = view
  const whose =
    visibility === 'PRIVATE' ? 'Private' : `Shared by ${owner?.email ?? 'a former member'}`
  return (
    <div className={classes.line}>
      <DisabledReason reason={isUsable ? null : UNUSABLE_VIEW_TEXT}>
        <button
          type="button"
          className={classes.run}
          aria-current={isCurrent || undefined}
          onClick={onRun}
        >
          <span className="truncate">{name}</span>
          <span className={`${classes.whose} soft truncate`}>
            {isUsable ? whose : 'Saved by another version. Save it again.'}
          </span>
        </button>
      </DisabledReason>
      {mayChange && (
        <>
          <LineButton icon="edit" label={`Edit view ${name}`} onPress={onEdit} />
          <LineButton icon="trash" label={`Delete view ${name}`} onPress={onDelete} />
        </>
      )}
    </div>
  )
}

type LineButtonProps = { icon: 'edit' | 'trash'; label: string; onPress: () => void }

function LineButton({ icon, label, onPress }: LineButtonProps) {
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size="sm"
      aria-label={label}
      onClick={({ currentTarget }) => {
        focusOpener(currentTarget)
        onPress()
      }}
    >
      <Icon name={icon} size={13} />
    </ActionIcon>
  )
}
