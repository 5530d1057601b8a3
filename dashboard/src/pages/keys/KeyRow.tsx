import { StatusText, type Tone } from '../../parts/text/StatusText.tsx'
import rows from '../../parts/table/DataTable.module.css'
import { TimeText } from '../../parts/time/TimeText.tsx'
import { useSession } from '../../api/session-context.tsx'
import { KeyActions } from './KeyActions.tsx'
import { KeyHealth } from './KeyHealth.tsx'
import { endOf, isActiveKey, type Key, STATUS_LABELS } from './keys.ts'
import { permissionText } from './permissions.ts'

export function KeyRow({ apiKey, onRotate }: { apiKey: Key; onRotate: (key: Key) => void }) {
  const { session } = useSession()
  const end = endOf(apiKey)
  const workspace = session.workspaces.find(({ id }) => id === apiKey.workspaceId)
  return (
    <tr className={isActiveKey(apiKey) ? undefined : rows.ended}>
      <td>
        <span className={rows.name}>{apiKey.name}</span>
        <span className={rows.second}>
          <span className="mono">{apiKey.prefix}…</span>
        </span>
      </td>
      <td>
        {apiKey.scope === 'COMPANY' ? 'Company' : (workspace?.name ?? 'Workspace')}
        <span className={rows.second}>{permissionText(apiKey)}</span>
      </td>
      <td>
        <StatusText tone={TONES[apiKey.status]}>{STATUS_LABELS[apiKey.status]}</StatusText>
        <EndedTime apiKey={apiKey} />
      </td>
      <td data-label="Last used">
        <LastUse apiKey={apiKey} />
      </td>
      <td data-label="Expires">
        {end === null ? (
          'Never'
        ) : (
          <TimeText at={end} style={apiKey.status === 'ROTATING' ? 'clock' : 'day'} />
        )}
      </td>
      <td data-label="Health">
        <KeyHealth apiKey={apiKey} />
      </td>
      <td className={rows.actions}>
        <KeyActions apiKey={apiKey} onRotate={() => onRotate(apiKey)} />
      </td>
    </tr>
  )
}

const TONES: Record<Key['status'], Tone> = {
  ACTIVE: 'good',
  ROTATING: 'warn',
  EXPIRED: 'neutral',
  REVOKED: 'neutral',
}
/** When a revoked or rotated key stopped working. */
function EndedTime({ apiKey: { status, graceUntil, revokedAt } }: { apiKey: Key }) {
  const endedAt = revokedAt ?? graceUntil
  if (status !== 'REVOKED' || endedAt === null) return null
  return (
    <span className={rows.second}>
      <TimeText at={endedAt} style="clock" />
    </span>
  )
}

function LastUse({ apiKey: { lastUsedAt, lastUsedIp, lastUsedEndpoint } }: { apiKey: Key }) {
  if (lastUsedAt === null) return <span className="soft">Never</span>
  return (
    <>
      <TimeText at={lastUsedAt} style="clock" />
      <span className={rows.second}>
        {[lastUsedEndpoint, lastUsedIp && `from ${lastUsedIp}`].filter(Boolean).join(' ')}
      </span>
    </>
  )
}
