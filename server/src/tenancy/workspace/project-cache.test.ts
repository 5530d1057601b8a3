import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/harness/timing/clock.ts'
import { newId, type ProjectId } from '../../platform/id.ts'
import { FairSemaphore } from '../../platform/scheduling/fair-semaphore.ts'
import { ProjectCache } from './project-cache.ts'

const WORKSPACE = { companyId: newId<'company'>(), workspaceId: newId<'workspace'>() }

/** A cache whose reads finish only when the test resolves them. */
function controlledCache() {
  const projects = new Set<ProjectId>()
  const reads: PromiseWithResolvers<ProjectId[]>[] = []
  const semaphore = new FairSemaphore({ permitsMax: 1, waitingMax: 1, waitingPerCompanyMax: 1 })
  const time = manualClock()
  const cache = new ProjectCache({
    list: () => {
      // A query sees only what is stored when it starts.
      const seen = [...projects]
      const read = Promise.withResolvers<ProjectId[]>()
      reads.push({ ...read, resolve: () => read.resolve(seen) })
      return read.promise
    },
    takeSlot: (companyId) => semaphore.take(companyId),
    clock: time.clock,
  })
  const listUnknown = (...ids: ProjectId[]) => cache.listUnknown(WORKSPACE, new Set(ids))
  return { projects, reads, listUnknown, ...time }
}

/** Lets all promises that are ready run their callbacks. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('does not read known projects again for a minute', async () => {
  const { projects, reads, listUnknown, advance } = controlledCache()
  const [known, other] = [newId<'project'>(), newId<'project'>()]
  projects.add(known).add(other)
  const first = listUnknown(known)
  await settled()
  reads[0]?.resolve([])
  assert.equal((await first).size, 0)
  advance(59_999)
  assert.equal((await listUnknown(known, other)).size, 0)
  assert.equal(reads.length, 1)
  advance(1)
  void listUnknown(known)
  await settled()
  assert.equal(reads.length, 2)
})

test('callers share a waiting read, and the next read finds a new project', async () => {
  const { projects, reads, listUnknown } = controlledCache()
  const [created, missing] = [newId<'project'>(), newId<'project'>()]
  const before = listUnknown(created)
  await settled()
  // The first query has already started, so it misses this project.
  projects.add(created)
  const after = Array.from({ length: 300 }, () => listUnknown(created, missing))
  await settled()
  assert.equal(reads.length, 1)
  reads[0]?.resolve([])
  assert.deepEqual([...(await before)], [created])
  await settled()
  reads[1]?.resolve([])
  for (const unknown of await Promise.all(after)) assert.deepEqual([...unknown], [missing])
  assert.equal(reads.length, 2)
})

test('a failed read fails its callers, and the next caller reads again', async () => {
  const { projects, reads, listUnknown } = controlledCache()
  const id = newId<'project'>()
  projects.add(id)
  const failing = [listUnknown(id), listUnknown(id)]
  await settled()
  reads[0]?.reject(new Error('the database is unreachable'))
  const outcomes = await Promise.allSettled(failing)
  assert(outcomes.every(({ status }) => status === 'rejected'))
  const next = listUnknown(id)
  await settled()
  reads[1]?.resolve([])
  assert.equal((await next).size, 0)
})
