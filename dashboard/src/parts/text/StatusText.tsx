import { Group } from '@mantine/core'
import { Icon, type IconName } from '../Icon.tsx'

export type Tone = 'good' | 'warn' | 'bad' | 'neutral'

const COLORS: Record<Tone, string> = {
  good: 'var(--good)',
  warn: 'var(--warn)',
  bad: 'var(--bad)',
  neutral: 'var(--text-soft)',
}
const ICONS: Record<Tone, IconName> = {
  good: 'check',
  warn: 'clock',
  bad: 'alert',
  neutral: 'minus',
}

/** A status as text with a color, so that it never depends on the color alone. */
export function StatusText({ tone, children }: { tone: Tone; children: string }) {
  return (
    <Group
      gap={4}
      wrap="nowrap"
      component="span"
      display="inline-flex"
      c={COLORS[tone]}
      // Within a sentence, aligns the text with the baseline instead of the icon.
      style={{ verticalAlign: 'bottom' }}
    >
      <Icon name={ICONS[tone]} size={13} />
      <span>{children}</span>
    </Group>
  )
}
