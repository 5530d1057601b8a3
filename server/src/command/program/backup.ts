import type { Command } from 'commander'
import type { BackupCommandOptions } from '../backup/backup.ts'
import type { RestoreCommandOptions } from '../backup/restore.ts'
import type { MoveCommandOptions } from '../move/move.ts'
import { type CommandContext, examples, readConfig } from './command-context.ts'

export function addBackupCommands(program: Command, context: CommandContext): void {
  const backup = program
    .command('backup')
    .description('copy the ledger into a folder while the service runs')
    .requiredOption(
      '--to <folder>',
      'the folder; if it has an earlier backup, only new events are copied',
    )
    .option('--without-archive', 'skip an archive that is a folder; one in S3 is never copied')
    .option('--with-secret-key', 'include the secret key')
    .option('--json', 'print one line of JSON')
    .action(async (options: BackupCommandOptions) => {
      const config = await readConfig(context)
      const { backUp } = await import('../backup/backup.ts')
      await backUp(config, options)
    })
  examples(
    backup,
    'annals backup --to /backups/annals',
    'annals backup --to /backups/annals --json',
  )

  const restore = program
    .command('restore')
    .description('load a backup into an empty database, and verify it')
    .requiredOption('--from <folder>', 'the folder of the backup')
    .option('--check-only', 'only check that the backup is complete and undamaged')
    .option('--json', 'print one line of JSON; the output of the verification goes to stderr')
    .action(async (options: RestoreCommandOptions) => {
      const config = await readConfig(context)
      const { restore } = await import('../backup/restore.ts')
      await restore(config, options)
    })
  examples(
    restore,
    'annals restore --from /backups/annals --check-only',
    'ANNALS_DATA_DIR=/var/lib/annals annals restore --from /backups/annals',
  )

  addMove(program, context)
}

function addMove(program: Command, context: CommandContext): void {
  const move = program
    .command('move')
    .description(
      'copy the ledger to another PostgreSQL while the service runs, verify it, and stop writes here',
    )
    .option('--to <url>', 'address of an empty database; with -, the first line of standard input')
    .option(
      '--stop-seconds <seconds>',
      'how long the last step may stop writes (default: 30); if it takes longer, it is given up',
    )
    .option('--cancel', 'give up a move, and use this database again')
    .option('--target-is-gone', 'with --cancel: the target was lost, so it is not checked')
    .option('--json', 'print one line of JSON')
    .action(async (options: MoveCommandOptions) => {
      const config = await readConfig(context)
      if (options.cancel) {
        const { cancel } = await import('../move/cancel.ts')
        await cancel(config, options)
        return
      }
      const { moveTo } = await import('../move/move.ts')
      await moveTo(config, options)
    })
  examples(
    move,
    'annals move --to - < /etc/annals/new-database-url',
    'annals move --cancel --to - < /etc/annals/new-database-url',
  )
}
