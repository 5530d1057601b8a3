import { Group, Paper, Progress, Stack, Text, Title } from '@mantine/core'
import { useSession } from '../../../api/session-context.tsx'
import { formatCount } from '../../../parts/text/format.ts'
import type { Company } from '../company.ts'

type Bounds = NonNullable<Company['bounds']>
type CountedLimit = 'workspaces' | 'members' | 'companyKeys' | 'views' | 'openExports'

const LABELS: readonly [bound: CountedLimit, label: string][] = [
  ['workspaces', 'Workspaces'],
  ['members', 'Members and open invitations'],
  ['companyKeys', 'Company keys'],
  ['views', 'Saved views'],
  ['openExports', 'Open exports'],
]
/** From this share on, a limit is highlighted. */
const NEARLY_FULL = 0.9

/** All limits of the company, and how much of each is used. */
export function LimitList({ company: { bounds } }: { company: Company }) {
  const { hasPermission } = useSession()
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="bounds">
      <Title order={2} id="bounds" mb="xs">
        Limits
      </Title>
      {bounds === null ? (
        <Text size="sm" className="soft">
          {hasPermission('company.manage')
            ? 'How much of each limit is used can’t be read now.'
            : 'Only owners and admins can see how much of each limit is used.'}
        </Text>
      ) : (
        <Stack gap="sm">
          {LABELS.map(([bound, label]) => (
            <LimitLine key={bound} label={label} {...bounds[bound]} />
          ))}
          <Text size="sm" className="soft numeric">
            {perWorkspace(bounds)}
          </Text>
        </Stack>
      )}
    </Paper>
  )
}

function LimitLine({ label, used, max }: { label: string; used: number; max: number }) {
  const isNearlyFull = used >= max * NEARLY_FULL
  return (
    <div>
      <Group justify="space-between" gap="xs">
        <Text size="sm">{label}</Text>
        <Text size="sm" className="numeric" {...(isNearlyFull && { c: 'var(--warn)' })}>
          {formatCount(used)} of {formatCount(max)}
          {isNearlyFull && ', almost full'}
        </Text>
      </Group>
      <Progress
        value={(used / max) * 100}
        size="sm"
        aria-label={`${label}: ${formatCount(used)} of ${formatCount(max)}`}
        {...(isNearlyFull && { color: 'yellow' })}
      />
    </div>
  )
}

function perWorkspace(bounds: Bounds): string {
  const { projectsPerWorkspaceMax, keysPerWorkspaceMax, webhooksPerWorkspaceMax } = bounds
  return `Each workspace can have up to ${projectsPerWorkspaceMax} projects, ${keysPerWorkspaceMax} active keys and ${webhooksPerWorkspaceMax} webhooks.`
}
