import { setTimeout as delay } from 'node:timers/promises'

import { EngineError } from './engine-error.ts'
import type { EngineFiles } from './files.ts'
import { type EngineConnection, type Presence, probeEngine } from './presence.ts'
import { findPostmaster, removeStalePidFiles, spawnPostmaster, stopPostmaster } from './process.ts'
import type { EngineSettings } from './settings.ts'
import {
  explainStartFailure,
  isHeldByOldBackends,
  markEngineLog,
  readEngineLog,
} from './start-failure.ts'
import type { EngineRunner } from './runner.ts'

const POLL_MS = 20
/** How long to wait while PostgreSQL doesn't respond, or has no free connection. */
const SILENCE_MS_MAX = 30_000
/**
 * How long to wait while it reports that it is starting: replaying a gigabyte of
 * log takes time on a slow disk.
 */
const RECOVERY_MS_MAX = 600_000
const OLD_BACKENDS_MS_MAX = 30_000
const OLD_BACKENDS_POLL_MS = 100

/** Starts PostgreSQL and returns once it accepts our connection. The caller holds the engine's file lock. */
export async function bootPostmaster(
  files: EngineFiles,
  connection: EngineConnection,
  {
    runner,
    settings,
    signal,
  }: { runner: EngineRunner; settings: EngineSettings; signal: AbortSignal | undefined },
): Promise<Presence> {
  const giveUpAtMs = performance.now() + OLD_BACKENDS_MS_MAX
  for (;;) {
    const mark = markEngineLog(files)
    removeStalePidFiles(files)
    const isAlive = spawnPostmaster(files, runner, settings)
    try {
      const presence = await waitForResponse(files, connection, { isAlive, signal })
      if (presence !== null) return presence
    } catch (error) {
      // Don't leave behind a process that we started but can't use.
      await stopPostmaster(files, findPostmaster(files))
      throw error
    }
    const lines = readEngineLog(files, mark)
    if (!isHeldByOldBackends(lines) || performance.now() >= giveUpAtMs) {
      throw explainStartFailure(files, lines)
    }
    signal?.throwIfAborted()
    await delay(OLD_BACKENDS_POLL_MS)
  }
}

/** Returns null as soon as no process is left that could respond. */
export async function waitForResponse(
  files: EngineFiles,
  connection: EngineConnection,
  { isAlive, signal }: { isAlive: () => boolean; signal: AbortSignal | undefined },
): Promise<Presence | null> {
  const startedAtMs = performance.now()
  let lastResponseAtMs = startedAtMs
  for (;;) {
    const probe = await probeEngine(connection)
    if (probe.kind === 'open') return probe.presence
    if (probe.kind === 'closed' && !isAlive()) return null
    signal?.throwIfAborted()
    const nowMs = performance.now()
    if (probe.kind !== 'closed') lastResponseAtMs = nowMs
    if (nowMs - startedAtMs > (probe.kind === 'full' ? SILENCE_MS_MAX : RECOVERY_MS_MAX)) {
      throw unansweredError(files, probe.kind)
    }
    if (nowMs - lastResponseAtMs > SILENCE_MS_MAX) throw unansweredError(files, probe.kind)
    await delay(POLL_MS)
  }
}

function unansweredError(files: EngineFiles, kind: 'starting' | 'full' | 'closed'): EngineError {
  const pid = findPostmaster(files)
  const subject = pid === null ? 'PostgreSQL' : `PostgreSQL (process ${pid})`
  const reason = {
    starting: 'did not finish its recovery in time',
    full: 'has no free connection',
    closed: 'does not respond',
  }[kind]
  return new EngineError(`${subject} of ${files.dataDir} ${reason}. Its log is in ${files.log}.`)
}
