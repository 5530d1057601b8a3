import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { manualClock } from '../../../test/harness/timing/clock.ts'
import { newId, type WorkspaceId } from '../id.ts'
import { WorkspaceRuns } from './workspace-runs.ts'

const [first, second, third]: WorkspaceId[] = [newId(), newId(), newId()]
assert(first && second && third)
const { signal } = new AbortController()

type RunsOptions = ConstructorParameters<typeof WorkspaceRuns>[0]

function setUp(options: Pick<RunsOptions, 'pause'> = {}) {
  const logged: unknown[] = []
  const { clock: monotonic, advance } = manualClock(0)
  const write = (line: string) => {
    const { event, workspaceId, err } = JSON.parse(line)
    logged.push({ event, workspaceId, message: err.message })
  }
  const logger = pino({}, { write })
  const times = { retryMs: 10_000, monotonic }
  const runs = new WorkspaceRuns({ event: 'test.failed', ...times, logger, ...options })
  /** Lists the workspaces that have runs left, like a store. */
  const runAll = async (
    left: Map<WorkspaceId, number>,
    run: (id: WorkspaceId) => 'done' | 'overtaken',
  ) => {
    const ran: WorkspaceId[] = []
    const list = async (except: WorkspaceId[]) =>
      [...left]
        .filter(([workspaceId, runsLeft]) => runsLeft > 0 && !except.includes(workspaceId))
        .map(([workspaceId]) => ({ workspaceId }))
    const runOnce = async ({ workspaceId }: { workspaceId: WorkspaceId }) => {
      ran.push(workspaceId)
      left.set(workspaceId, (left.get(workspaceId) ?? 0) - 1)
      return run(workspaceId)
    }
    await runs.runAll(list, runOnce, signal)
    return ran
  }
  return { runs, runAll, logged, advance }
}

test('workspaces take turns until none has work left', async () => {
  const { runAll } = setUp()
  const left = new Map([
    [first, 3],
    [second, 1],
    [third, 2],
  ])
  assert.deepEqual(await runAll(left, () => 'done'), [first, second, third, first, third, first])
})

test('a workspace whose run fails waits for its retry, and the others continue', async () => {
  const { runAll, logged, advance } = setUp()
  const left = new Map([
    [first, 9],
    [second, 2],
  ])
  const failFirst = (workspaceId: WorkspaceId): 'done' => {
    if (workspaceId === first) throw new Error('refused')
    return 'done'
  }
  assert.deepEqual(await runAll(left, failFirst), [first, second, second])
  assert.deepEqual(logged, [{ event: 'test.failed', workspaceId: first, message: 'refused' }])
  advance(9_999)
  assert.deepEqual(await runAll(left, failFirst), [])
  advance(1)
  assert.deepEqual(await runAll(left, failFirst), [first])
})

test('the round ends if another node is at work', async () => {
  const { runAll } = setUp()
  const left = new Map([
    [first, 1],
    [second, 1],
  ])
  assert.deepEqual(await runAll(left, () => 'overtaken'), [first])
})

test('an outage ends the round, and no workspace waits for a retry', async () => {
  const { runs, runAll, logged } = setUp()
  const fail = () => {
    throw Object.assign(new Error('gone'), { code: 'ECONNREFUSED' })
  }
  await assert.rejects(runAll(new Map([[first, 1]]), fail), /gone/)
  assert.deepEqual([runs.waiting, logged], [[], []])
})

test('a run is followed by a pause of three times its length, even if it fails', async () => {
  const pausesMs: number[] = []
  const { runs, advance } = setUp({ pause: async (ms) => void pausesMs.push(ms) })
  const succeed = async () => advance(1_000)
  const fail = async () => {
    advance(500)
    throw new Error('refused')
  }
  assert.equal((await runs.run(first, succeed, signal))?.tookMs, 1_000)
  assert.equal(await runs.run(first, fail, signal), null)
  assert.deepEqual(pausesMs, [3_000, 1_500])
})

test('a stop ends the pause', async () => {
  const { runs, advance } = setUp()
  const stop = new AbortController()
  const ended = runs.run(first, async () => advance(3_600_000), stop.signal)
  await new Promise(setImmediate)
  stop.abort()
  assert.equal((await ended)?.tookMs, 3_600_000)
})
