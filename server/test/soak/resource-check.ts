import { readdirSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Monitor } from './monitor.ts'
import type { SoakService } from './soak-service.ts'
import type { Verdicts } from './verdicts.ts'

/** The resources of the idle service. */
export type IdleLevel = {
  /** Excludes database connections, which the pool keeps for a minute. */
  descriptors: number
  /** Excludes the timer of each pooled connection. */
  timers: number
  databaseConnections: number
}

const POLL_MS = 1_000
const SPARE = 10
/** A pool of 20, the writer, the engine's presence, and three for an archiver. */
const DATABASE_CONNECTIONS_MAX = 30

export async function readIdleLevel(service: SoakService, monitor: Monitor): Promise<IdleLevel> {
  const [row] = await service.query<{ count: number }>(
    `select count(*)::int as count from pg_stat_activity
      where backend_type = 'client backend' and pid <> pg_backend_pid()`,
  )
  const databaseConnections = row?.count ?? 0
  const sample = await monitor.sample()
  return {
    descriptors: (sample?.descriptors ?? 0) - databaseConnections,
    timers: Math.max(0, (sample?.timers ?? 0) - databaseConnections),
    databaseConnections,
  }
}

/** After the load, all resources must return to the idle level. */
export async function checkResources(
  { service, monitor, verdicts }: { service: SoakService; monitor: Monitor; verdicts: Verdicts },
  { idle, settleMsMax }: { idle: IdleLevel; settleMsMax: number },
): Promise<IdleLevel> {
  const giveUpAtMs = performance.now() + settleMsMax
  for (;;) {
    const now = await readIdleLevel(service, monitor)
    const isBack =
      now.descriptors <= idle.descriptors + SPARE &&
      now.timers <= idle.timers + SPARE &&
      now.databaseConnections <= DATABASE_CONNECTIONS_MAX
    if (isBack || performance.now() > giveUpAtMs) {
      const describe = () => `idle: ${JSON.stringify(idle)}, after the load: ${JSON.stringify(now)}`
      verdicts.check('resources', isBack, describe)
      return now
    }
    await delay(POLL_MS)
  }
}

/** The archive must contain exactly the cataloged files and what the signer signed, and PostgreSQL no temporary files. */
export async function checkFiles(service: SoakService, verdicts: Verdicts): Promise<void> {
  const catalog = await service.query<{ key: string }>('select object_key as key from segment')
  const files = listFiles(service.folder.path('archive'))
  const named = new Set(catalog.map(({ key }) => key))
  const chains = await service.query<{ key: string }>(
    "select 'signer/' || workspace_id as key from chain_head",
  )
  const known = named
    .union(new Set(chains.map(({ key }) => key)))
    .union(new Set(['signer/keys', 'signer/conditional-writes']))
  const strays = files.filter(
    (file) => !known.has(file) && !/^(\.drafts\/|annals-archive-)/.test(file),
  )
  verdicts.check('archive', strays.length === 0, () => `stray files: ${strays.join(' ')}`)
  const absent = [...named].filter((key) => !files.includes(key))
  verdicts.check('archive', absent.length === 0, () => `absent files: ${absent.join(' ')}`)
  const temporary = listFiles(service.folder.path('engine/cluster/base/pgsql_tmp'))
  verdicts.check('resources', temporary.length === 0, () => `left: ${temporary.join(' ')}`)
}

const LOCKS: ReadonlySet<string> = new Set(['lock', 'replace.lock'])

/** When no process uses the archive, no drafts may be left. */
export function checkDrafts(service: SoakService, verdicts: Verdicts): void {
  const left = listFiles(service.folder.path('archive/.drafts')).filter((file) => !LOCKS.has(file))
  verdicts.check('archive', left.length === 0, () => `drafts: ${left.join(' ')}`)
}

function listFiles(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => `${parentPath}/${name}`.slice(folder.length + 1))
  } catch {
    return []
  }
}
