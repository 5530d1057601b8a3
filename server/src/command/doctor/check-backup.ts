import { resolve } from 'node:path'
import { readBackupManifest } from '../../outlet/backup/manifest.ts'
import { systemClock as clock } from '../../platform/time/clock.ts'
import { DAY_MS, HOUR_MS } from '../../platform/time/time-units.ts'
import { count } from '../output/format.ts'
import { type Finding, finding, type Machine } from './check.ts'

/** A daily backup may start late and take hours. */
const AGE_MS_MAX = 2 * DAY_MS

export async function checkBackupAge({ backupFolder }: Machine): Promise<Finding> {
  if (backupFolder === null) {
    return finding.skipped('To check the age of your last backup, add --backup FOLDER.')
  }
  const folder = resolve(backupFolder)
  const manifest = await readBackupManifest(folder)
  if (manifest === null) {
    return finding.failed(`${folder} has no complete backup.`, `Run: annals backup --to ${folder}`)
  }
  const ageMs = clock() - Date.parse(manifest.createdAt)
  const message = `The backup in ${folder} is ${ageText(ageMs)} old and has ${count(manifest.events)} events.`
  if (ageMs <= AGE_MS_MAX) return finding.ok(message)
  return finding.warning(message, `Back up at least once per day: annals backup --to ${folder}`)
}

function ageText(ms: number): string {
  const hours = Math.max(0, Math.round(ms / HOUR_MS))
  return hours < 48 ? `${hours} hours` : `${Math.round(hours / 24)} days`
}
