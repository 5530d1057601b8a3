import { checkAddresses } from './check-addresses.ts'
import { checkArchive } from './check-archive.ts'
import { checkBackupAge } from './check-backup.ts'
import { checkDataFolder } from './check-data-folder.ts'
import {
  checkClock,
  checkMigrations,
  checkNodes,
  checkPermissions,
  checkServer,
} from './check-database.ts'
import { checkDisk } from './check-disk.ts'
import { checkKeyFile, checkSigner, compareSecretKey } from './check-keys.ts'
import { checkPorts } from './check-ports.ts'
import { checkReplica } from './check-replica.ts'
import { checkOpenFiles, checkVersions } from './check-versions.ts'
import { checkCheckpoints, checkDeliveries, checkWebhooks } from './check-work.ts'
import type { Check, Machine, OpenLedger } from './check.ts'

/** What `annals doctor` checks, in this order. "configuration" comes before these. */
export const MACHINE_CHECKS: readonly Check<Machine>[] = [
  { name: 'versions', run: checkVersions },
  { name: 'open files', run: checkOpenFiles },
  { name: 'data folder', run: checkDataFolder },
  { name: 'disk', run: checkDisk, needs: 'data folder' },
  { name: 'secret key file', run: checkKeyFile, needs: 'data folder' },
  { name: 'addresses', run: checkAddresses },
  { name: 'ports', run: checkPorts },
  { name: 'backup', run: checkBackupAge },
]

/** These need the database. "database" comes before them, and they are skipped if it fails. */
export const LEDGER_CHECKS: readonly Check<OpenLedger>[] = [
  { name: 'migrations', run: checkMigrations },
  { name: 'permissions', run: checkPermissions },
  { name: 'server settings', run: checkServer },
  { name: 'replica', run: checkReplica },
  { name: 'clock', run: checkClock },
  { name: 'nodes', run: checkNodes },
  { name: 'secret key', run: compareSecretKey },
  { name: 'archive', run: checkArchive },
  { name: 'signing key', run: checkSigner, needs: 'secret key' },
  { name: 'checkpoints', run: checkCheckpoints },
  { name: 'webhooks', run: checkWebhooks },
  { name: 'deliveries', run: checkDeliveries },
]
