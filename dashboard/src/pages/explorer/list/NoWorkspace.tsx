import { Button, Text } from '@mantine/core'
import { EmptyState } from '../../../parts/message/EmptyState.tsx'
import { ALL_WORKSPACES } from '../../../query/explorer-search.ts'
import type { Change } from '../use-explorer.ts'

/** Shown for a link to a workspace that doesn't exist or that the member may not see. */
export function NoWorkspace({ change }: { change: Change }) {
  return (
    <EmptyState icon="alert" title="You can’t access this workspace">
      <Text size="sm" className="soft" ta="center" maw={460} role="alert">
        The link is for a workspace that doesn’t exist or that you don’t have access to. Ask an
        owner or admin of your company for access.
      </Text>
      <Button
        size="compact-sm"
        variant="default"
        onClick={() => change({ workspaceId: ALL_WORKSPACES, view: null, event: null })}
      >
        Show my workspaces
      </Button>
    </EmptyState>
  )
}
