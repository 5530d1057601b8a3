import { openSync } from 'node:fs'
import { serverListOf } from '../../../src/platform/pg/servers.ts'
import { probeDatabase } from '../../../src/platform/pg/probe-database.ts'

/**
 * Checks whether a database is alive when the process can open no more files. The argument is its
 * connection as JSON. Prints `true` or `false`. Run it with a low limit on open files.
 */
const { current: server } = serverListOf(JSON.parse(process.argv[2] ?? ''))
// The first connection loads what later ones need.
await probeDatabase(server)
try {
  for (;;) openSync('/dev/null', 'r')
} catch {
  console.log(await probeDatabase(server))
}
