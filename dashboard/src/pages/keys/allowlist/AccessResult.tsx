import { Text } from '@mantine/core'
import type { paths } from '../../../api/schema.d.ts'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import classes from './AccessResult.module.css'

type Verdict =
  paths['/dashboard/keys/preflight']['post']['responses'][200]['content']['application/json']

/** All checks in the order in which a call passes them. The first one that fails decides. */
export function AccessResult({
  verdict: { allowed, address, refusal, gates, rateLimit },
  keyName,
  what,
}: {
  verdict: Verdict
  keyName: string
  what: string
}) {
  return (
    <section aria-label="Result">
      <div role="status">
        <Text fw={600} mt="lg">
          {allowed ? 'Allowed' : 'Denied'}: {keyName} {allowed ? 'can' : 'can’t'} {what} from{' '}
          {address}.
        </Text>
        <Text size="sm" className="soft">
          {refusal
            ? `A call would get a ${refusal.status} ${refusal.code} response.`
            : `The content of the call is not checked. ${rateLimit}`}
        </Text>
      </div>
      <ol className={classes.gates}>
        {gates.map(({ name, ok, message }) => (
          <li
            className={classes.gate}
            key={name}
            data-first-no={refusal?.gate === name ? true : undefined}
          >
            <StatusText tone={ok ? 'good' : 'bad'}>
              {`${CHECK_LABELS[name] ?? name}: ${ok ? 'passed' : 'failed'}`}
            </StatusText>
            <span>{message}</span>
          </li>
        ))}
      </ol>
    </section>
  )
}

const CHECK_LABELS: Record<string, string> = {
  exists: 'Exists',
  status: 'Status',
  scope: 'Scope',
  permission: 'Permission',
  allowlist: 'IP allowlist',
  plan: 'Plan',
  dashboard: 'Available to keys',
}
