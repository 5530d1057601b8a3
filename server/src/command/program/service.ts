import { type Command, Option } from 'commander'
import { SERVE_ROLES, type ServeRole } from '../../serve-role.ts'
import { PLANS } from '../../tenancy/plans.ts'
import type { BootstrapOptions } from '../bootstrap.ts'
import {
  type CommandContext,
  examples,
  readConfig,
  repeatable,
  suggesting,
} from './command-context.ts'

/** Commands that start the service and prepare what it needs. */
export function addServiceCommands(program: Command, context: CommandContext): void {
  const serve = program
    .command('serve')
    .description('run the service until it receives SIGTERM')
    .addOption(
      new Option('--role <role>', 'what this node does').choices(SERVE_ROLES).default('all'),
    )
    .action(async (options: { role: ServeRole }) => {
      const config = await readConfig(context)
      const { serve } = await import('../serve.ts')
      await serve(config, { ...options, stopSignals: context.stopSignals })
    })
  examples(serve, 'annals serve', 'ANNALS_PORT=9090 annals serve', 'annals serve --role worker')

  const migrate = program
    .command('migrate')
    .description('apply pending database migrations')
    .action(async () => {
      const config = await readConfig(context)
      const { migrateDatabase } = await import('../migrate.ts')
      await migrateDatabase(config)
    })
  examples(migrate, 'annals migrate')

  addBootstrap(program, context)
}

function addBootstrap(program: Command, context: CommandContext): void {
  const bootstrap = program
    .command('bootstrap')
    .description('create a company with workspaces, a project, an owner and keys')
    .option('--json', 'print one line of JSON')
    .option('--company <name>', 'name of the company', 'Company')
    .addOption(suggesting('--plan <plan>', 'its plan', PLANS).default('PRO'))
    .addOption(repeatable('--workspace <name>', 'a workspace', '"Production"'))
    .option('--project <name>', 'a project in the first workspace', 'Default')
    .option('--email <email>', "the owner's login (default: a random one)")
    .option(
      '--password <password>',
      "the owner's password (default: a random one); other users of the machine can see it",
    )
    .option('--password-stdin', "read the owner's password from the first line of standard input")
    .addOption(
      repeatable(
        '--allow-ip <cidr>',
        'an address range for the allowlist',
        '127.0.0.1/32 and ::1/128',
      ),
    )
    .action(async (options: BootstrapOptions) => {
      const config = await readConfig(context)
      const { bootstrap } = await import('../bootstrap.ts')
      await bootstrap(config, options)
    })
  examples(
    bootstrap,
    "annals bootstrap --company 'Acme Inc.' --email owner@acme.example",
    'annals bootstrap --json --email owner@acme.example --password-stdin < owner.password',
    'annals bootstrap --workspace Production --workspace Staging --allow-ip 192.0.2.0/24',
  )
}
