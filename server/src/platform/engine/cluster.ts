import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { EngineError } from './engine-error.ts'
import { type EngineFiles, type FileOwner, syncFolder, writePrivately } from './files.ts'
import type { EngineRunner } from './runner.ts'
import type { EngineUser } from './user.ts'

export const ENGINE_ROLE = 'annals'

const INITDB_MS_MAX = 120_000
const UNFINISHED = 'cluster.new-'

/**
 * Creates the cluster completely or not at all: initdb creates and syncs it under a temporary name, and
 * then it is renamed. So a crash or a full disk leaves nothing that a later start could mistake for a
 * cluster. The name is new each time, because an initdb whose parent was killed may still write to the old
 * one. A user without a name can't run initdb; in that case the creator runs it, and the cluster's owner
 * changes before the rename. The caller holds the engine's file lock.
 */
export async function createCluster(
  files: EngineFiles,
  {
    runner,
    user,
    password,
    signal,
  }: {
    runner: EngineRunner
    user: EngineUser
    password: string
    signal: AbortSignal | undefined
  },
): Promise<void> {
  const name = `${UNFINISHED}${randomBytes(6).toString('hex')}`
  const folder = join(files.engine, name)
  const passwordFile = `${folder}.password`
  const isRoot = process.getuid?.() === 0
  try {
    removeUnfinished(files)
    fs.mkdirSync(folder, { mode: 0o700 })
    writePrivately(passwordFile, `${password}\n`)
    if (isRoot) [folder, passwordFile].forEach((path) => changeOwner(user.creator, path))
    // The creator can traverse the engine's folder to its own, but can't list it.
    if (user.creator.uid !== user.uid) fs.chmodSync(files.engine, 0o711)
    await runInitdb(files, runner, { name, creator: user.creator, signal })
    fs.chmodSync(files.engine, 0o700)
    if (isRoot) takeOver(folder, user)
    // Delete it now: a kill after the rename would leave it behind permanently.
    fs.rmSync(passwordFile)
    fs.renameSync(folder, files.cluster)
    syncFolder(files.engine)
  } finally {
    removeUnfinished(files)
    fs.chmodSync(files.engine, 0o700)
  }
}

function changeOwner({ uid, gid }: FileOwner, path: string): void {
  fs.lchownSync(path, uid, gid)
}

/**
 * Closes each folder to the creator before changing the owner of anything inside. Otherwise another process
 * of that user could replace one of our files with a link to one of root's.
 */
function takeOver(folder: string, owner: FileOwner): void {
  changeOwner(owner, folder)
  fs.chmodSync(folder, 0o700)
  for (const name of fs.readdirSync(folder)) {
    const path = join(folder, name)
    const found = fs.lstatSync(path)
    if (found.isDirectory()) takeOver(path, owner)
    else if (found.isFile() && found.nlink === 1) changeOwner(owner, path)
    else throw new EngineError(`${path} is not a PostgreSQL file. No database was created.`)
  }
}

async function runInitdb(
  files: EngineFiles,
  runner: EngineRunner,
  { name, creator, signal }: { name: string; creator: FileOwner; signal: AbortSignal | undefined },
): Promise<void> {
  const program = join(runner.native, 'bin', 'initdb')
  const initdbArgs = [
    `--pgdata=${join(runner.engine, name)}`,
    `--username=${ENGINE_ROLE}`,
    `--pwfile=${join(runner.engine, `${name}.password`)}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // The packages contain ICU 60, and the C library changes its sort order between releases. The builtin
    // locale is stable.
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
    '--data-checksums',
    '--no-instructions',
  ]
  const { file, args, options } = runner.command(program, initdbArgs, creator)
  try {
    await promisify(execFile)(file, args, { ...options, timeout: INITDB_MS_MAX, signal })
  } catch (cause) {
    signal?.throwIfAborted()
    // The message ends with what initdb printed.
    const message = cause instanceof Error ? cause.message.trim() : String(cause)
    const reason = /(?:error|FATAL|PANIC): *(.+)/.exec(message)?.[1] ?? message.split('\n').at(-1)
    throw new EngineError(`Can't create a database in ${files.engine}: ${reason}`, { cause })
  }
}

function removeUnfinished(files: EngineFiles): void {
  for (const name of fs.readdirSync(files.engine)) {
    if (!name.startsWith(UNFINISHED)) continue
    fs.rmSync(join(files.engine, name), { recursive: true, force: true, maxRetries: 3 })
  }
}
