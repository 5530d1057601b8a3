import type { FaultRecord } from './fault-loop.ts'
import type { SoakResult } from './soak.ts'
import { VERDICTS } from './verdicts.ts'

/** The result as Markdown. */
export function describeSoak(result: SoakResult): string {
  const { minutes, seed, eventsSent, eventsStored, faultsSkipped } = result
  return [
    `## Soak of ${minutes} minutes, seed ${seed}`,
    `${format(eventsSent)} events sent, ${format(eventsStored)} stored.`,
    markdownTable(['Activity', 'Outcomes', 'Slowest response'], activityRows(result)),
    markdownTable(['Fault', 'Times', 'Longest outage'], faultRows(result.faults)),
    ...(faultsSkipped === null ? [] : [faultsSkipped]),
    markdownTable(['Figure', 'Value'], figureRows(result)),
    markdownTable(['Verdict', 'Checks', 'Result'], verdictRows(result)),
    ...failureLines(result),
  ].join('\n\n')
}

function activityRows({ activities }: SoakResult): string[][] {
  return Object.entries(activities.toJSON())
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([activity, outcomes]) => [
      activity,
      Object.entries(outcomes)
        .map(([outcome, count]) => `${outcome}: ${format(count)}`)
        .join(', '),
      activities.slowestMs(activity) === 0 ? '' : seconds(activities.slowestMs(activity)),
    ])
}

function faultRows(faults: readonly FaultRecord[]): string[][] {
  return [...Map.groupBy(faults, ({ kind }) => kind)]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([kind, records]) => [kind, format(records.length), longestOutage(records)])
}

function longestOutage(records: readonly FaultRecord[]): string {
  if (records.some(({ outageMs }) => outageMs === null)) return 'did not recover'
  const longestMs = Math.max(...records.map(({ outageMs }) => outageMs ?? 0))
  return seconds(longestMs)
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`
}

function figureRows({ memory, idle, afterLoad, driverRssMbMax, logErrors }: SoakResult) {
  const trend = (first: number, last: number) => `${first.toFixed(0)} → ${last.toFixed(0)} MB`
  const memoryRows = memory
    ? [
        ['Longest run of one process', `${memory.minutes.toFixed(1)} minutes`],
        ['Memory (RSS), first → last third', trend(memory.rssMbFirst, memory.rssMbLast)],
        ['Heap after collection, first → last third', trend(memory.heapMbFirst, memory.heapMbLast)],
      ]
    : []
  const errors = Object.entries(logErrors).map(([name, count]) => `${name}: ${format(count)}`)
  return [
    ...memoryRows,
    ['Descriptors, idle → after', `${idle.descriptors} → ${afterLoad.descriptors}`],
    ['Timers, idle → after', `${idle.timers} → ${afterLoad.timers}`],
    [
      'Database connections, idle → after',
      `${idle.databaseConnections} → ${afterLoad.databaseConnections}`,
    ],
    ['Error lines in the log', errors.join(', ') || 'none'],
    ['Memory of the soak itself', `${driverRssMbMax.toFixed(0)} MB`],
  ]
}

function verdictRows({ verdicts, memory }: SoakResult): string[][] {
  return verdicts.map(({ name, checks, failureCount }) => {
    const isUnjudged = name === 'memory' && (memory?.isSteady ?? null) === null
    const result = isUnjudged ? 'too short to tell' : 'ok'
    return [
      VERDICTS[name],
      format(checks),
      failureCount === 0 ? result : `FAILED ${format(failureCount)} times`,
    ]
  })
}

function failureLines({ verdicts }: SoakResult): string[] {
  return verdicts.flatMap(({ name, failures }) =>
    failures.map((failure) => `- ${name}: ${failure}`),
  )
}

function markdownTable(names: readonly string[], rows: readonly string[][]): string {
  const cells = [names, names.map(() => '---'), ...rows]
  return cells.map((line) => `| ${line.join(' | ')} |`).join('\n')
}

function format(value: number): string {
  return value.toLocaleString('en')
}
