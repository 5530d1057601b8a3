import { WarningBox } from '../../../parts/message/WarningBox.tsx'
import classes from './EventPanel.module.css'
import type { EventCheck } from './use-event-check.ts'

/** A banner above an event that this browser or a verification run found to be broken. */
export function BrokenEvent({ check: { differences, verdict } }: { check: EventCheck }) {
  if (differences.length === 0 && verdict === null) return null
  return (
    <WarningBox mb="sm" title="This event failed verification. Don’t rely on it.">
      {differences.length > 0 ? <Differences texts={differences} /> : verdict}
    </WarningBox>
  )
}

export function Differences({ texts }: { texts: readonly string[] }) {
  return (
    <ul className={classes.differences}>
      {texts.map((text) => (
        <li key={text}>{text}</li>
      ))}
    </ul>
  )
}
