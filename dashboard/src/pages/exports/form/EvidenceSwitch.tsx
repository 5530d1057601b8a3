import { Switch } from '@mantine/core'
import { formatCount } from '../../../parts/text/format.ts'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import type { PreflightResult } from '../exports.ts'

/** Only for JSONL: CSV has nothing to recompute hashes from. */
export function EvidenceSwitch({
  isOn,
  onChange,
}: {
  isOn: boolean
  onChange: (isOn: boolean) => void
}) {
  return (
    <Switch
      label="Prove that nothing is missing"
      description="The file also has a stub for each event that the filters skip: its hash, time, category and action, but no actor, resource or metadata. An auditor can check that no matching event was left out."
      checked={isOn}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  )
}

/** What prevents the proof. */
export function EvidenceNotes({ answer }: { answer: PreflightResult }) {
  const { evidence, isCut, rows, stubs, rowLimit } = answer
  if (evidence === 'MEMBERSHIP') {
    return (
      <div>
        <StatusText tone="warn">These filters can’t prove that nothing is missing.</StatusText>{' '}
        Stubs have no actor, resource or metadata to compare, so the file has no stubs. Each row can
        still be verified. Filter only by time, category, action, project or trace ID.
      </div>
    )
  }
  if (evidence !== 'COMPLETE' || !isCut) return null
  const lines = formatCount(Number(rows) + Number(stubs))
  return (
    <div>
      <StatusText tone="warn">{`Too many events: ${lines} rows and stubs.`}</StatusText> The limit
      is {formatCount(Number(rowLimit))}, and a truncated file would prove nothing. Choose a later
      start, one workspace or another source.
    </div>
  )
}
