import { Button, Popover, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { lazy, Suspense, useState } from 'react'
import { whenConnected } from '../../../api/when-connected.ts'
import { Icon } from '../../../parts/Icon.tsx'
import { useRestoreFocus } from '../../../parts/dialog/use-restore-focus.ts'
import type { Change } from '../use-explorer.ts'
import { useViews, type View } from './views.ts'

// Loaded when the member moves to the button, or opens the menu.
const loadList = async () => ({ default: (await import('./ViewList.tsx')).ViewList })
const ViewList = lazy(whenConnected(loadList))
const EditView = lazy(
  whenConnected(async () => ({ default: (await import('./EditView.tsx')).EditView })),
)
const DeleteView = lazy(
  whenConnected(async () => ({ default: (await import('./DeleteView.tsx')).DeleteView })),
)

/** If it fails, opening the menu tries again. */
const prefetch = () => void loadList().catch(() => {})

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
            onPointerEnter={prefetch}
            onFocus={prefetch}
            rightSection={<Icon name="down" size={12} />}
          >
            <Text span size="xs" maw={140} truncate>
              {current?.name ?? 'Views'}
            </Text>
          </Button>
        </Popover.Target>
        <Popover.Dropdown p={4} aria-label="Views">
          <Suspense>
            <ViewList
              views={views}
              viewId={viewId}
              onRun={(patch) => {
                change(patch)
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
          </Suspense>
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
