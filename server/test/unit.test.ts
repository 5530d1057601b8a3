import { globSync } from 'node:fs'
import { join } from 'node:path'

// All unit tests in one process: starting a process takes longer than most of these files.
const SOURCE = join(import.meta.dirname, '../src')
for (const file of globSync('**/*.test.ts', { cwd: SOURCE }).toSorted()) {
  await import(join(SOURCE, file))
}
