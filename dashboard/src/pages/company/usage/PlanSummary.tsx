import { List, Paper, Text, Title } from '@mantine/core'
import { formatCount } from '../../../parts/text/format.ts'
import type { Company } from '../company.ts'

/** Describes the plan in sentences. */
export function PlanSummary({ plan }: { plan: Company['plan'] }) {
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
        Only your operator can change the plan.
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
    `Events stay in the explorer for ${formatCount(hotDays)} days and are archived after that.`,
    exportRowsMax === null
      ? 'No exports. They require the Starter plan.'
      : `Exports with up to ${formatCount(exportRowsMax)} rows.`,
    hasWebhooks ? 'Webhooks.' : 'No webhooks. They require the Pro plan.',
    eventsPerSecondMax === null
      ? 'No rate limit.'
      : `Up to ${formatCount(eventsPerSecondMax)} calls or events per second and key.`,
  ]
}
