import type { Command } from 'commander'
import { type CommandContext, examples, readConfig } from './command-context.ts'

/** `annals secret-key …` and `annals signing-key …`. */
export function addKeyCommands(program: Command, context: CommandContext): void {
  const secretKey = program.command('secret-key').description('manage the secret key')
  examples(secretKey, 'annals secret-key accept')
  const accept = secretKey
    .command('accept')
    .description(
      'make the configured secret key the one that this database requires; stop all nodes first',
    )
    .action(async () => {
      const config = await readConfig(context)
      const { acceptKey } = await import('../accept-secret-key.ts')
      await acceptKey(config)
    })
  examples(accept, 'ANNALS_SECRET_KEY_FILE=/etc/annals/new.key annals secret-key accept')

  const signingKey = program
    .command('signing-key')
    .description('manage the key that signs checkpoints')
  examples(signingKey, 'annals signing-key rotate')
  const rotate = signingKey
    .command('rotate')
    .description('replace the key that is derived from the secret key; both sign for 30 days')
    .action(async () => {
      const config = await readConfig(context)
      const { rotateSigningKey } = await import('../rotate-signing-key.ts')
      await rotateSigningKey(config)
    })
  examples(rotate, 'annals signing-key rotate')
}
