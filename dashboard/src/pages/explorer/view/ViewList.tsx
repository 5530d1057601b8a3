import { ActionIcon, ScrollArea, Text } from '@mantine/core'
import { DisabledReason } from '../../../parts/DisabledReason.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { focusOpener } from '../../../parts/dialog/focus-opener.ts'
import { Icon } from '../../../parts/Icon.tsx'
import type { SearchPatch } from '../../../query/explorer-search.ts'
import { viewPatch } from './view-query.ts'
import type { useViews, View } from './views.ts'
import classes from './ViewList.module.css'

export function ViewList({
  views,
  viewId,
  onRun,
  onEdit,
  onDelete,
}: {
  views: ReturnType<typeof useViews>
  viewId: string | undefined
  onRun: (patch: SearchPatch) => void
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
            onRun={() => onRun(viewPatch(view))}
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
