import { ActionIcon, Button, Switch, Tooltip } from '@mantine/core'
import { memo } from 'react'
import { Gate } from '../../parts/Gate.tsx'
import { Icon } from '../../parts/Icon.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import type { LiveState } from './event-source.ts'
import type { ExplorerSearch } from '../../query/explorer-search.ts'
import type { DialogName } from './ExplorerDialogs.tsx'
import classes from './ExplorerPage.module.css'
import { TimeMenu } from './filter/TimeMenu.tsx'
import { livePatch, type TimeWindow } from '../../query/time-window.ts'
import type { Change } from './use-explorer.ts'
import { ViewsMenu } from './view/ViewsMenu.tsx'

type HeaderProps = {
  search: ExplorerSearch
  timeWindow: TimeWindow
  liveState: LiveState
  change: Change
  onRefresh: () => void
  onDialog: (name: DialogName) => void
}

/** The period, and the actions for the current query. */
export const ExplorerHeader = memo(function ExplorerHeader(props: HeaderProps) {
  const { search, timeWindow, liveState, change, onRefresh, onDialog } = props
  const isLive = search.live !== undefined
  return (
    <PageHeader title="Explorer">
      <TimeMenu timeWindow={timeWindow} change={change} />
      <ActionIcon variant="default" size={30} aria-label="Refresh" onClick={onRefresh}>
        <Icon name="refresh" size={14} />
      </ActionIcon>
      <Switch
        size="xs"
        label={
          <span className={classes.live}>
            {isLive && liveState !== 'following' ? 'Live…' : 'Live'}
          </span>
        }
        checked={isLive}
        onChange={(event) =>
          change(event.currentTarget.checked ? livePatch(search.range) : { live: null })
        }
      />
      <ViewsMenu viewId={search.view} change={change} />
      <Gate permission="views.manage" action="save views">
        <Button size="xs" variant="default" onClick={() => onDialog('save')}>
          Save view
        </Button>
      </Gate>
      <Gate permission="exports.create" action="create exports">
        <Button size="xs" variant="default" onClick={() => onDialog('export')}>
          Export events
        </Button>
      </Gate>
      <Tooltip label="Keyboard shortcuts">
        <ActionIcon
          variant="subtle"
          color="gray"
          size={30}
          aria-label="Keyboard shortcuts"
          visibleFrom="sm"
          onClick={() => onDialog('help')}
        >
          ?
        </ActionIcon>
      </Tooltip>
    </PageHeader>
  )
})
