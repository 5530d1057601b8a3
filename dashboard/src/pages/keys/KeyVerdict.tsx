import { Text } from '@mantine/core'
import type { paths } from '../../api/schema.d.ts'
import { StatusText } from '../../parts/StatusText.tsx'
import classes from './KeyVerdict.module.css'

type Verdict =
  paths['/dashboard/keys/preflight']['post']['responses'][200]['content']['application/json']

/** All checks in the order in which a call passes them. The first one that fails decides. */
export function KeyVerdict({
  verdict: { allowed, address, refusal, gates, rateLimit },
  keyName,
  what,
}: {
  verdict: Verdict
  keyName: string
  what: string
}) {
  return (
    <section aria-label="The answer">
      <div role="status">
        <Text fw={600} mt="lg">
          {allowed ? 'Yes' : 'No'}: {keyName} {allowed ? 'may' : 'may not'} {what} from {address}.
        </Text>
        <Text size="sm" className="soft">
          {refusal
            ? `A call would be answered ${refusal.status} ${refusal.code}.`
            : `What the call is about is not looked at. ${rateLimit}`}
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
              {`${GATE_LABELS[name] ?? name}: ${ok ? 'yes' : 'no'}`}
            </StatusText>
            <span>{message}</span>
          </li>
        ))}
      </ol>
    </section>
  )
}

const GATE_LABELS: Record<string, string> = {
  exists: 'Known',
  status: 'Still works',
  scope: 'Scope',
  allowlist: 'Address',
  plan: 'Plan',
  dashboard: 'For keys',
}
