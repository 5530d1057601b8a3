import { Badge, Group } from '@mantine/core'
import rows from '../../../parts/table/DataTable.module.css'
import { DataTable } from '../../../parts/table/DataTable.tsx'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import { useSession } from '../../../api/session-context.tsx'
import { MemberActions } from './MemberActions.tsx'
import { type Member, roleLabel } from './members.ts'
import { WorkspaceNames } from '../workspace/WorkspaceNames.tsx'

export function MemberTable({ members }: { members: readonly Member[] }) {
  const { session } = useSession()
  const owners = members.filter(({ role }) => role === 'OWNER').length
  return (
    <DataTable
      label="Members"
      columns={['Email', 'Role', 'Access', 'Second factor', 'Last seen', 'Joined']}
    >
      {members.map((member) => (
        <tr key={member.id}>
          <td>
            <Group gap={6}>
              <span className={rows.name}>{member.email}</span>
              {member.id === session.user.id && (
                <Badge size="sm" variant="default" tt="none">
                  You
                </Badge>
              )}
            </Group>
          </td>
          <td>{roleLabel(member.role)}</td>
          <td data-label="Access">
            <WorkspaceNames ids={member.workspaceIds} />
          </td>
          <td data-label="Second factor">
            <StatusText tone={member.hasSecondFactor ? 'good' : 'neutral'}>
              {member.hasSecondFactor ? 'On' : 'Off'}
            </StatusText>
          </td>
          <td data-label="Last seen">
            {member.lastSeenAt === null ? (
              <span className="soft">Not recently</span>
            ) : (
              <TimeText at={member.lastSeenAt} style="clock" />
            )}
          </td>
          <td data-label="Joined">
            <TimeText at={member.createdAt} style="day" />
          </td>
          <td className={rows.actions}>
            <MemberActions member={member} isLastOwner={member.role === 'OWNER' && owners < 2} />
          </td>
        </tr>
      ))}
    </DataTable>
  )
}
