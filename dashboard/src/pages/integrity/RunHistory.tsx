import { Skeleton, Text, Title } from '@mantine/core'
import { useSession } from '../../api/session-context.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { DataTable } from '../../parts/table/DataTable.tsx'
import rows from '../../parts/table/DataTable.module.css'
import { LoadMoreButton } from '../../parts/table/LoadMoreButton.tsx'
import { formatCount } from '../../parts/text/format.ts'
import { TimeText } from '../../parts/time/TimeText.tsx'
import { useZonedLabel } from '../../parts/time/time-zone.ts'
import { scopeText } from './period.ts'
import { CertificateLink, RunVerdict } from './RunState.tsx'
import { hasCertificate, type Run, starterOf, useRuns } from './runs.ts'

const COLUMNS = ['Verified', 'Result', 'Events', 'Started by']

/** All verifications of the selected workspace, or of every workspace, by members and by schedule. */
export function RunHistory() {
  const { workspace, session } = useSession()
  const started = useZonedLabel('Started')
  const { pages, items: runs } = useRuns(workspace?.id ?? null)
  const names = new Map(session.workspaces.map(({ id, name }) => [id, name]))
  return (
    <section aria-label="Verification history">
      <Title order={2} mt="xl" mb={4}>
        Verification history
      </Title>
      <Text size="sm" className="soft" maw={640} mb="sm">
        Annals verifies each chain once per day, unless the operator changed the interval. If a
        chain is broken or can’t be verified, you get a notice.
      </Text>
      <ErrorBox error={pages.error} onRetry={pages.refetch} />
      {pages.isPending && <Skeleton height={120} radius="sm" />}
      {pages.data && runs.length === 0 && <Text size="sm">No verifications yet.</Text>}
      {runs.length > 0 && (
        <DataTable
          label="Verification history"
          columns={[started, ...(workspace ? [] : ['Workspace']), ...COLUMNS]}
        >
          {runs.map((run) => (
            <RunRow
              key={run.id}
              run={run}
              workspaceName={workspace ? null : (names.get(run.workspaceId) ?? 'Audit log')}
            />
          ))}
        </DataTable>
      )}
      <LoadMoreButton pages={pages}>Show older verifications</LoadMoreButton>
    </section>
  )
}

function RunRow({ run, workspaceName }: { run: Run; workspaceName: string | null }) {
  return (
    <tr>
      <td>
        <TimeText at={run.createdAt} style="clock" />
      </td>
      {workspaceName !== null && <td>{workspaceName}</td>}
      <td>{scopeText(run)}</td>
      <td>
        <RunVerdict run={run} />
        {(run.status === 'BROKEN' || run.status === 'FAILED') && (
          <span className={rows.second}>{run.verdict}</span>
        )}
      </td>
      <td className="numeric" data-label="Events">
        {formatCount(run.checked)}
      </td>
      <td>{starterOf(run)}</td>
      <td className={rows.actions}>{hasCertificate(run) && <CertificateLink run={run} />}</td>
    </tr>
  )
}
