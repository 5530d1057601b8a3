import { once } from 'node:events'

import { EngineError, startEngine } from '../../../src/platform/engine/embedded-postgres.ts'

/**
 * A process that uses the engine until its input ends or it is killed. Arguments: the data folder,
 * and `service` or `command`. Prints one line of JSON when it is ready or has failed.
 */
const [dataDir = '', role] = process.argv.slice(2)
try {
  await using engine = await startEngine({
    dataDir,
    exclusive: role === 'service',
    settings: { shared_buffers: '16MB', max_connections: '20' },
  })
  console.log(JSON.stringify({ connection: engine.connection }))
  process.stdin.resume()
  await once(process.stdin, 'end')
} catch (error) {
  if (!(error instanceof EngineError)) throw error
  console.log(JSON.stringify({ refusal: error.message }))
}
