import { List, Popover, Text, UnstyledButton } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import rows from '../../parts/table/DataTable.module.css'
import { StatusText, type Tone } from '../../parts/text/StatusText.tsx'
import type { Key } from './keys.ts'

/** The health score and its largest deduction. Hovering or clicking shows all deductions. */
export function KeyHealth({ apiKey: { health, name } }: { apiKey: Key }) {
  const [isOpen, open] = useDisclosure(false)
  if (health === null) return <span className="soft">–</span>
  const { score } = health
  const deductions = health.deductions.toSorted((a, b) => b.points - a.points)
  const [worst, ...others] = deductions
  return (
    <>
      <Popover opened={isOpen} onChange={open.set} width={280} position="bottom-start" shadow="md">
        <Popover.Target>
          <UnstyledButton
            fz="sm"
            className="numeric"
            onClick={open.open}
            onMouseEnter={open.open}
            onMouseLeave={open.close}
            aria-label={`Health of ${name}: ${score} of 100, show details`}
          >
            <StatusText tone={toneOf(score)}>{`${score}`}</StatusText>
          </UnstyledButton>
        </Popover.Target>
        <Popover.Dropdown>
          <Text size="sm" fw={600} mb={4}>
            Health: {score} of 100
          </Text>
          {deductions.length === 0 ? (
            <Text size="sm">No issues found</Text>
          ) : (
            <List size="sm" listStyleType="none" spacing={2}>
              {deductions.map(({ points, reason }) => (
                <List.Item key={reason}>
                  <span className="numeric soft">−{points}</span> {reason}
                </List.Item>
              ))}
            </List>
          )}
        </Popover.Dropdown>
      </Popover>
      {worst && (
        <span className={rows.second}>
          {worst.reason}
          {others.length > 0 && ` And ${others.length} more.`}
        </span>
      )}
    </>
  )
}

function toneOf(score: number): Tone {
  if (score >= 75) return 'good'
  return score >= 50 ? 'warn' : 'bad'
}
