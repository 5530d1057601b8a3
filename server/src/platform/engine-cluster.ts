import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { diskFullError, EngineError, explainFileError } from './engine-error.ts'
import { type EngineFiles, type Owner, syncFolder, writePrivately } from './engine-files.ts'
import type { EngineRunner } from './engine-runner.ts'

export const ENGINE_ROLE = 'annals'

const INITDB_MS_MAX = 120_000
const UNFINISHED = 'cluster.new-'

/**
 * Makes the cluster, all of it or nothing: it grows under a name of its own and is renamed once
 * initdb has synced it, so a crash or a full disk leaves nothing that a later start could take for
 * a cluster. The name is fresh each time because an initdb whose parent was killed may still write
 * to the old one. The caller holds the engine's file lock.
 */
export async function createCluster(
  files: EngineFiles,
  { runner, owner, password }: { runner: EngineRunner; owner: Owner; password: string },
): Promise<void> {
  const name = `${UNFINISHED}${randomBytes(6).toString('hex')}`
  const passwordFile = join(files.engine, `${name}.password`)
  try {
    removeUnfinished(files)
    writePrivately(passwordFile, `${password}\n`)
    if (process.getuid?.() === 0) fs.lchownSync(passwordFile, owner.uid, owner.gid)
    await runInitdb(files, runner, name)
    fs.renameSync(join(files.engine, name), files.cluster)
    syncFolder(files.engine)
  } catch (cause) {
    throw explainFileError(files.engine, cause)
  } finally {
    removeUnfinished(files)
  }
}

async function runInitdb(files: EngineFiles, runner: EngineRunner, name: string): Promise<void> {
  const { file, args, options } = runner.command(join(runner.native, 'bin', 'initdb'), [
    `--pgdata=${join(runner.engine, name)}`,
    `--username=${ENGINE_ROLE}`,
    `--pwfile=${join(runner.engine, `${name}.password`)}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // The packages carry ICU 60 and the system's C library changes its order between releases;
    // the builtin locale does neither.
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
    '--data-checksums',
    '--no-instructions',
  ])
  try {
    await promisify(execFile)(file, args, { ...options, timeout: INITDB_MS_MAX })
  } catch (cause) {
    const said = spoken(cause)
    if (said.includes('No space left on device')) throw diskFullError(files.engine, cause)
    const reason = /(?:error|FATAL|PANIC): *(.+)/.exec(said)?.[1] ?? lastLine(said)
    throw new EngineError(`A database cannot be made in ${files.engine}: ${reason}`, { cause })
  }
}

function spoken(error: unknown): string {
  if (!(error instanceof Error)) return ''
  if (!('stderr' in error) || typeof error.stderr !== 'string') return error.message
  return error.stderr.trim() === '' ? error.message : error.stderr
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? ''
}

function removeUnfinished(files: EngineFiles): void {
  for (const name of fs.readdirSync(files.engine)) {
    if (!name.startsWith(UNFINISHED)) continue
    fs.rmSync(join(files.engine, name), { recursive: true, force: true, maxRetries: 3 })
  }
}
