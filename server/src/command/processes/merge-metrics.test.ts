import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mergeMetrics } from './merge-metrics.ts'

test('the series of each process keep their values, and follow the others of their metric', () => {
  const own = `# HELP a Help.
# TYPE a counter
a 1
# HELP b Help.
# TYPE b histogram
b_bucket{le="1"} 2
b_count 3
`
  const other = `# HELP b Help.
# TYPE b histogram
b_bucket{le="1"} 4
b_count 5
# HELP c Help.
# TYPE c gauge
c{text="x{} y\\"z"} 6.5e-7
`
  assert.equal(
    mergeMetrics(
      new Map([
        [0, own],
        [2, other],
      ]),
    ),
    `# HELP a Help.
# TYPE a counter
a{process="0"} 1
# HELP b Help.
# TYPE b histogram
b_bucket{process="0",le="1"} 2
b_count{process="0"} 3
b_bucket{process="2",le="1"} 4
b_count{process="2"} 5
# HELP c Help.
# TYPE c gauge
c{process="2",text="x{} y\\"z"} 6.5e-7
`,
  )
})
