import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasId } from './engine-user.ts'

test('an id exists only if the user namespace maps it', () => {
  const whole = '         0          0 4294967295\n'
  const container = '         0     100000      65536\n'
  const rootless = '         0       1000          1\n         1     100000      60000\n'
  assert.deepEqual(
    [whole, container, rootless, ''].map((map) => hasId(map, 60_800)),
    [true, true, false, false],
  )
  assert.deepEqual([hasId(rootless, 60_000), hasId(rootless, 60_001)], [true, false])
  assert.deepEqual([hasId(container, 65_535), hasId(container, 65_536)], [true, false])
})
