import type { Command } from 'commander'
import type { WitnessCommandOptions } from '../witness.ts'
import { collectValue, type CommandContext, examples } from './command-context.ts'

export function addWitnessCommand(program: Command, { stopSignals }: CommandContext): void {
  const witness = program
    .command('witness')
    .description("cosign the checkpoints of another party's ledgers until SIGTERM")
    .requiredOption('--listen <address>', 'address and port, such as 127.0.0.1:8090')
    .requiredOption(
      '--log-key <key>',
      'a public key from /.well-known/annals.json of the log; can be repeated',
      collectValue,
    )
    .requiredOption('--origin-prefix <prefix>', 'which logs, such as audit.example/')
    .option(
      '--name <name>',
      'name of this witness, such as witness.example',
      'annals.local/witness',
    )
    .option('--folder <folder>', 'where its key and its state are', 'annals-witness')
    .action(async (options: WitnessCommandOptions) => {
      const { runWitness } = await import('../witness.ts')
      await runWitness(options, stopSignals)
    })
  examples(
    witness,
    'annals witness --listen 127.0.0.1:8090 --log-key 3q2+7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= --origin-prefix audit.example/',
  )
}
