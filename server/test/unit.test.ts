import { globSync } from 'node:fs'
import { join } from 'node:path'
import { after } from 'node:test'
import * as fc from 'fast-check'
import { rounds } from './harness/timing/fault-rounds.ts'

// For properties that name no number of their own.
fc.configureGlobal({ numRuns: rounds(40, 100) })
after(() => fc.resetConfigureGlobal())

// All unit tests in one process: starting a process takes longer than most of these files.
const ROOT = join(import.meta.dirname, '../..')
for (const file of globSync('{server,sdk}/src/**/*.test.ts', { cwd: ROOT }).toSorted()) {
  await import(join(ROOT, file))
}
