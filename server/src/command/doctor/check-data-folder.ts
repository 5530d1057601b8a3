import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode, explainFileError } from '../../platform/engine/engine-error.ts'
import { engineFiles, hasCluster, refuseMissingCluster } from '../../platform/engine/files.ts'
import { type Finding, finding, type Machine } from './check.ts'

const PRIVATE = ['secret.key', 'engine.password']
const OTHERS = 0o077

export async function checkDataFolder({ config }: Machine): Promise<Finding> {
  const { dataDir } = config
  if (config.databaseUrl !== null) {
    return finding.ok('Not used: ANNALS_DATABASE_URL is set, so the embedded engine is off.')
  }
  const files = engineFiles(dataDir)
  try {
    // Unlike the calls below, this doesn't block the process if the disk hangs.
    await stat(dataDir)
    if (hasCluster(files)) return await checkModes(dataDir)
    refuseMissingCluster(files, { mayCreate: true })
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw explainFileError(dataDir, error)
  }
  return finding.warning(
    `There is no data in ${dataDir} yet.`,
    'To create a database there, start the service. If it has its data elsewhere, set ANNALS_DATA_DIR.',
  )
}

async function checkModes(dataDir: string): Promise<Finding> {
  for (const name of PRIVATE) {
    const path = join(dataDir, name)
    const found = await stat(path).catch(() => null)
    if (found === null || (found.mode & OTHERS) === 0) continue
    return finding.warning(`Other users can read ${path}.`, `Run: chmod 600 ${path}`)
  }
  return finding.ok(`${dataDir} has a database.`)
}
