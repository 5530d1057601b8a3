import { execFile } from 'node:child_process'
import * as fs from 'node:fs'
import { promisify } from 'node:util'

import { EngineError } from './engine-error.ts'
import type { EngineFiles, Owner } from './engine-files.ts'

const run = promisify(execFile)

/**
 * Who shall own and run the engine. PostgreSQL refuses root; under root it is whoever owns the
 * engine's folder already, else the owner of the data folder, else `nobody`.
 */
export async function chooseOwner(files: EngineFiles): Promise<Owner> {
  const ownUid = process.getuid?.() ?? 0
  const engine = fs.lstatSync(files.engine, { throwIfNoEntry: false })
  if (ownUid !== 0) {
    if (engine === undefined || engine.uid === ownUid) {
      return { uid: ownUid, gid: process.getgid?.() ?? 0 }
    }
    throw new EngineError(
      `${files.engine} belongs to another user (uid ${engine.uid}); run annals as that user, or ` +
        'set ANNALS_DATA_DIR to another folder.',
    )
  }
  const owner = [engine, fs.statSync(files.dataDir)].find((found) => found && found.uid !== 0)
  // A folder can be a user's own and yet of root's group, which the engine has no use for.
  if (owner && owner.gid !== 0) return { uid: owner.uid, gid: owner.gid }
  const nobody = await findNobody(files)
  return { uid: owner?.uid ?? nobody.uid, gid: nobody.gid }
}

async function findNobody(files: EngineFiles): Promise<Owner> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', 'nobody']), run('id', ['-g', 'nobody'])])
    return { uid: Number(uid.stdout) >>> 0, gid: Number(gid.stdout) >>> 0 }
  } catch (cause) {
    throw new EngineError(
      `PostgreSQL does not run as root and this system has no user nobody; run annals as an ` +
        `ordinary user, give ${files.dataDir} to one, or set ANNALS_DATABASE_URL.`,
      { cause },
    )
  }
}
