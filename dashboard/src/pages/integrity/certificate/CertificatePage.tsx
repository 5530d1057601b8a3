import { Button, Group, Skeleton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { isNotFound } from '../../../api/not-found.ts'
import { useSession } from '../../../api/session-context.tsx'
import { AnchorLink } from '../../../parts/AnchorLink.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { PageHeader } from '../../../parts/PageHeader.tsx'
import { hasCertificate, runQuery } from '../runs.ts'
import { Certificate } from './Certificate.tsx'
import classes from './Certificate.module.css'

const route = getRouteApi('/shell/app/integrity/certificate/$runId')

/** What a run verified, on a page that prints on one sheet. */
export function CertificatePage() {
  const { runId } = route.useParams()
  const { session } = useSession()
  const run = useQuery(runQuery(runId))
  return (
    <>
      <div className={classes.screenOnly}>
        <AnchorLink to="/app/integrity">Integrity</AnchorLink>
        <PageHeader title="Certificate">
          {run.data && hasCertificate(run.data) && (
            <Button size="xs" onClick={() => window.print()}>
              Print or save as PDF
            </Button>
          )}
        </PageHeader>
      </div>
      {run.isPending && <Skeleton height={480} maw={760} radius="sm" />}
      {run.error && !isNotFound(run.error) && <ErrorBox error={run.error} onRetry={run.refetch} />}
      {isNotFound(run.error) && (
        <Text>
          This verification doesn’t exist, or you can’t see its workspace. Annals keeps the last 400
          verifications of each workspace.
        </Text>
      )}
      {run.data &&
        (hasCertificate(run.data) ? (
          <Certificate
            run={run.data}
            companyName={session.company.name}
            workspace={session.workspaces.find(({ id }) => id === run.data.workspaceId) ?? null}
          />
        ) : (
          <Group>
            <Text>Only a verification that found no problem has a certificate.</Text>
          </Group>
        ))}
    </>
  )
}
