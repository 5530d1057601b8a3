import { List, Paper, Text, Title } from '@mantine/core'
import { formatCount } from '../../parts/format.ts'
import type { Company } from './company.ts'

/** Describes the plan in sentences. */
export function PlanTerms({ plan }: { plan: Company['plan'] }) {
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="plan">
      <Title order={2} id="plan">
        Plan: {PLAN_LABELS[plan.name]}
      </Title>
      <List size="sm" mt="xs" spacing={4} className="numeric">
        {sentencesOf(plan).map((sentence) => (
          <List.Item key={sentence}>{sentence}</List.Item>
        ))}
      </List>
      <Text size="sm" className="soft" mt="sm">
        Changed by your operator; nothing here can change it.
      </Text>
    </Paper>
  )
}

const PLAN_LABELS: Record<Company['plan']['name'], string> = {
  FREE: 'Free',
  STARTER: 'Starter',
  PRO: 'Pro',
  ENTERPRISE: 'Enterprise',
}

function sentencesOf({
  exportRowsMax,
  hasWebhooks,
  hotDays,
  eventsPerSecondMax,
}: Company['plan']): string[] {
  return [
    `Events are in the explorer for ${hotDays} days, and in the archive after that.`,
    exportRowsMax === null
      ? 'No exports; they come with Starter.'
      : `Exports of up to ${formatCount(exportRowsMax)} rows each.`,
    hasWebhooks ? 'Webhooks.' : 'No webhooks; they come with Pro.',
    eventsPerSecondMax === null
      ? 'No limit on how fast a key sends events.'
      : `Up to ${formatCount(eventsPerSecondMax)} calls or events a second with each key.`,
  ]
}
