import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { RepeatedWarning } from './repeated-warning.ts'

test('logs the first warning in full and counts the others of the same second', async () => {
  const lines: { event: string; traceId?: string; count?: number; err?: object }[] = []
  const { promise: summarized, resolve } = Promise.withResolvers<void>()
  const write = (line: string) => {
    if (lines.push(JSON.parse(line)) === 2) resolve()
  }
  const log = pino({ level: 'warn' }, { write })
  const warning = new RepeatedWarning('request.unavailable', 50)
  for (let nth = 1; nth <= 30; nth += 1) {
    warning.warn(log, { traceId: String(nth), err: new Error('out of reach') })
  }
  assert.deepEqual([lines.length, lines[0]?.traceId], [1, '1'])
  assert(lines[0]?.err)
  await summarized
  assert.equal(lines[1]?.count, 29)
  warning.warn(log, { traceId: '31', err: new Error('out of reach') })
  assert.equal(lines[2]?.traceId, '31')
})
