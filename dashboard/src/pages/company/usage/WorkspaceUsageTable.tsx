import { formatBytes, formatCount } from '../../../parts/text/format.ts'
import rows from '../../../parts/table/DataTable.module.css'
import { useSession } from '../../../api/session-context.tsx'
import { byWorkspace, type Usage } from './usage.ts'

/** Usage per workspace. Hidden if there is only one, whose usage is the total above. */
export function WorkspaceUsageTable({ usage }: { usage: Usage }) {
  const { session } = useSession()
  const sums = byWorkspace(usage)
  if (sums.length < 2) return null
  return (
    <table className={rows.table} aria-label="Usage by workspace">
      <thead>
        <tr>
          <th scope="col">Workspace</th>
          <th scope="col" className={rows.number}>
            Events
          </th>
          <th scope="col" className={rows.number}>
            Bytes
          </th>
        </tr>
      </thead>
      <tbody>
        {sums.map(({ workspaceId, events, bytes }) => (
          <tr key={workspaceId}>
            <td>{session.workspaces.find(({ id }) => id === workspaceId)?.name ?? workspaceId}</td>
            <td className={rows.number} data-label="Events">
              {formatCount(events)}
            </td>
            <td className={rows.number} data-label="Bytes">
              {formatBytes(bytes)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
