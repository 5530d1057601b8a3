import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { benchEnvironment, saveResult } from '../../../bench/lib/report.ts'
import { FAULT_KINDS, type FaultKind, isFaultKind } from './faults.ts'
import { describeSoak } from './soak-report.ts'
import { runSoak } from './soak.ts'

/** `npm run soak -- --minutes N [--seed S] [--rate EVENTS_PER_SECOND] [--faults 'a, b'] [--log-file F]` */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    rate: { type: 'string', default: '200' },
    faults: { type: 'string', default: FAULT_KINDS.join(', ') },
    'log-file': { type: 'string' },
  },
})

const say = (line: string) => void process.stdout.write(`${line}\n`)
const seed = Number(values.seed)
say(`seed ${seed}`)
const result = await runSoak({
  minutes: positive(values.minutes),
  eventsPerSecond: positive(values.rate),
  seed,
  faults: values.faults.split(/ *, */).map(parseFault),
  ...(values['log-file'] !== undefined && { logFile: values['log-file'] }),
  onProgress: say,
})
say(`\n${describeSoak(result)}\n`)
say(`saved ${saveResult('soak', { ...benchEnvironment({}), ...result })}`)
const failed = result.verdicts.filter(({ failureCount }) => failureCount > 0)
if (failed.length > 0) {
  say(`FAILED: ${failed.map(({ name }) => name).join(', ')}; repeat with --seed ${seed}`)
  process.exitCode = 1
}

function parseFault(name: string): FaultKind {
  assert(isFaultKind(name), `no such fault: "${name}"; there are: ${FAULT_KINDS.join(', ')}`)
  return name
}

function positive(text: string): number {
  const value = Number(text)
  assert(value > 0, `a positive number is needed, got "${text}"`)
  return value
}
