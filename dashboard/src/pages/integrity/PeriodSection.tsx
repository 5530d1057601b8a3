import { Group, Paper, Select, Text, Title } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { Gate } from '../../parts/Gate.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { fromInputTime, toInputTime } from '../../parts/time/input-time.ts'
import { useTimeZone } from '../../parts/time/time-zone.ts'
import { TimeInput } from '../../parts/time/TimeInput.tsx'
import { type Period, recentMonths } from './period.ts'
import classes from './PeriodSection.module.css'
import { POLL_MS, refreshIntegrity, runQuery } from './runs.ts'
import { RunState } from './RunState.tsx'

const OTHER = 'other'

/** Verifies the events of a month or of any other period. */
export function PeriodSection({ workspaceId }: { workspaceId: string }) {
  const [runId, setRunId] = useState<string | null>(null)
  const start = useMutation({
    mutationFn: (period: Period) =>
      unwrap(client.POST('/dashboard/integrity/runs', { body: { workspaceId, ...period } })),
    onSuccess: ({ id }) => setRunId(id),
    onSettled: refreshIntegrity,
  })
  return (
    <section aria-label="Verify a period">
      <Title order={2} mt="xl" mb={4}>
        Verify a period
      </Title>
      <Text size="sm" className="soft" maw={640} mb="sm">
        Recomputes the hashes of all events that Annals received in this period, including archived
        ones. If they are intact, you can print a certificate.
      </Text>
      <Paper withBorder p="md">
        <PeriodForm isBusy={start.isPending} onVerify={(period) => start.mutate(period)} />
        <ErrorBox error={start.error} />
        {runId !== null && <PeriodRun runId={runId} />}
      </Paper>
    </section>
  )
}

function PeriodForm({ isBusy, onVerify }: { isBusy: boolean; onVerify: (period: Period) => void }) {
  useTimeZone()
  const months = recentMonths(Date.now())
  const [current, last] = months
  const [chosen, setChosen] = useState(last?.label ?? OTHER)
  const [from, setFrom] = useState(toInputTime(current?.from ?? 0))
  const [to, setTo] = useState(toInputTime(Date.now()))
  const month = months.find(({ label }) => label === chosen)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (month) return onVerify({ from: month.from, to: month.to })
    const [fromTime, toTime] = [fromInputTime(from), fromInputTime(to)]
    if (fromTime !== null && toTime !== null) onVerify({ from: fromTime, to: toTime })
  }
  const isBackward = !month && (fromInputTime(from) ?? '') >= (fromInputTime(to) ?? 'z')
  return (
    <form onSubmit={submit} className={classes.form}>
      <Select
        label="Period"
        allowDeselect={false}
        checkIconPosition="right"
        data={[
          ...months.map(({ label }) => ({
            value: label,
            label: label === current?.label ? `${label}, until now` : label,
          })),
          { value: OTHER, label: 'Other period' },
        ]}
        value={month ? chosen : OTHER}
        onChange={(value) => setChosen(value ?? OTHER)}
      />
      {!month && (
        <>
          <TimeInput label="From" value={from} onChange={setFrom} isRequired />
          <TimeInput
            label="To (exclusive)"
            value={to}
            onChange={setTo}
            error={isBackward && 'Enter a time after the start.'}
            isRequired
          />
        </>
      )}
      <Group className={classes.action}>
        <Gate permission="integrity.verify" action="verify periods">
          <BusyButton type="submit" variant="default" isBusy={isBusy} disabled={isBackward}>
            Verify period
          </BusyButton>
        </Gate>
      </Group>
    </form>
  )
}

function PeriodRun({ runId }: { runId: string }) {
  const run = useQuery({
    ...runQuery(runId),
    refetchInterval: ({ state: { data } }) => (data?.status === 'RUNNING' ? POLL_MS : false),
  })
  if (run.error) return <ErrorBox error={run.error} onRetry={run.refetch} />
  return run.data ? <RunState run={run.data} /> : null
}
