import type { Command } from 'commander'
import type { ForkOptions } from '../fork-ledger.ts'
import { type CommandContext, EXAMPLE_ID, examples, readConfig } from './command-context.ts'

/** Commands that check or move the events of all workspaces. */
export function addLedgerCommands(program: Command, context: CommandContext): void {
  const verify = program
    .command('verify')
    .description(
      'recompute the chain and the tree of every workspace; exit with code 1 if one is broken',
    )
    .action(async () => {
      const config = await readConfig(context)
      const { verify } = await import('../verify.ts')
      await verify(config)
    })
  examples(verify, 'annals verify')

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
