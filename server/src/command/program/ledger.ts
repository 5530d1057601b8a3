import { type Command, Option } from 'commander'
import { wholeNumber } from '../client/program-options.ts'
import type { ForkOptions } from '../fork-ledger.ts'
import type { VerifyCommandOptions } from '../verify/verify.ts'
import { type CommandContext, EXAMPLE_ID, examples, readConfig } from './command-context.ts'

/** Each thread has a database connection. */
const VERIFY_THREADS_MAX = 32

/** Commands that check or move the events of all workspaces. */
export function addLedgerCommands(program: Command, context: CommandContext): void {
  const verify = program
    .command('verify')
    .description(
      'recompute the chain and the tree of every workspace; exit with code 1 if one is broken',
    )
    .addOption(
      new Option('--parallel <threads>', 'how many threads verify at most')
        .default(undefined, 'one per core, up to 8')
        .argParser(wholeNumber(1, VERIFY_THREADS_MAX)),
    )
    .option(
      '--since <file>',
      'verify only what follows the checkpoints in this file, and update them',
    )
    .option('--json', 'print one line of JSON')
    .action(async (options: VerifyCommandOptions) => {
      const config = await readConfig(context)
      const { verify } = await import('../verify/verify.ts')
      await verify(config, options)
    })
  examples(
    verify,
    'annals verify',
    'annals verify --parallel 1',
    'annals verify --since /mnt/audit/verified.json',
  )

  const archive = program
    .command('archive')
    .description('move events to the archive')
    .option(
      '--before <time>',
      "archive events received before this time (default: those past their plan's hot time)",
    )
    .action(async (options: { before?: string }) => {
      const config = await readConfig(context)
      const { archiveEvents } = await import('../archive.ts')
      await archiveEvents(config, options)
    })
  examples(archive, 'annals archive', 'annals archive --before 2026-03-01T00:00:00Z')

  const fork = program
    .command('ledger-fork')
    .description(
      'report or accept a chain that the signer refuses, or a lost workspace, such as after restoring a backup',
    )
    .requiredOption('--workspace <id>', 'id of the workspace')
    .option('--accept-size <events>', 'number of events to accept; without it, only report')
    .option('--accept-lost', 'accept that the whole workspace is lost')
    .action(async (options: ForkOptions) => {
      const config = await readConfig(context)
      const { forkLedger } = await import('../fork-ledger.ts')
      await forkLedger(config, options)
    })
  examples(
    fork,
    `annals ledger-fork --workspace ${EXAMPLE_ID}`,
    `annals ledger-fork --workspace ${EXAMPLE_ID} --accept-size 1200`,
  )
}
