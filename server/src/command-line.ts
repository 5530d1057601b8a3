import { inspect } from 'node:util'
import { Command, Option } from 'commander'
import type { BackupCommandOptions } from './command/backup/backup.ts'
import type { RestoreCommandOptions } from './command/backup/restore.ts'
import type { BootstrapOptions } from './command/bootstrap.ts'
import { addClientCommands } from './command/client/program.ts'
import type { ForkOptions } from './command/fork-ledger.ts'
import type { MapOptions } from './command/map-group.ts'
import type { WitnessCommandOptions } from './command/witness.ts'
import { parseConfig, SERVE_ROLES, type ServeRole } from './config.ts'
import { OperatorError } from './errors.ts'
import type { StopSignals } from './platform/stop-signals.ts'

/** An option that can be repeated. `ifMissing` says what its absence means. */
const repeatable = (flags: string, description: string, ifMissing: string): Option =>
  new Option(flags, `${description}; can be repeated`).argParser(collect).default([], ifMissing)
const collect = (value: string, previous: string[] = []): string[] => [...previous, value]

type CommandContext = { env: NodeJS.ProcessEnv; stopSignals: StopSignals }

/** Each command imports only what it needs: loading the whole service takes over a second of CPU time. */
function createProgram(context: CommandContext): Command {
  const program = new Command('annals')
    .description('Audit-event service')
    .showHelpAfterError()
    .enablePositionalOptions()
  addServe(program, context)
  addCompanyCommands(program, context)
  addLedgerCommands(program, context)
  addBackupCommands(program, context)
  addWitness(program, context)
  addClientCommands(program, context)
  return program
}

function addServe(program: Command, { env, stopSignals }: CommandContext): void {
  program
    .command('serve')
    .description('run the service until it receives SIGTERM')
    .addOption(
      new Option('--role <role>', 'what this node does').choices(SERVE_ROLES).default('all'),
    )
    .action(async (options: { role: ServeRole }) => {
      const { serve } = await import('./command/serve.ts')
      await serve(parseConfig(env), { ...options, stopSignals })
    })
}

function addCompanyCommands(program: Command, { env }: CommandContext): void {
  program
    .command('bootstrap')
    .description('create a company with workspaces, a project, an owner and keys')
    .option('--json', 'print one line of JSON')
    .option('--company <name>', 'name of the company', 'Company')
    .option('--plan <plan>', 'FREE, STARTER, PRO or ENTERPRISE', 'PRO')
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
      const { bootstrap } = await import('./command/bootstrap.ts')
      await bootstrap(parseConfig(env), options)
    })

  const company = program.command('company').description('manage a company')
  company
    .command('open-dashboard')
    .description('stop applying the allowlist to the dashboard, if members are locked out')
    .requiredOption('--company <id>', 'id of the company')
    .action(async (options: { company: string }) => {
      const { openDashboardOf } = await import('./command/company-open-dashboard.ts')
      await openDashboardOf(parseConfig(env), options)
    })
  company
    .command('set-plan')
    .requiredOption('--company <id>', 'id of the company')
    .requiredOption('--plan <plan>', 'FREE, STARTER, PRO or ENTERPRISE')
    .action(async (options: { company: string; plan: string }) => {
      const { setPlan } = await import('./command/set-plan.ts')
      await setPlan(parseConfig(env), options)
    })

  addGroupCommands(company, env)

  const user = program.command('user').description('manage a member')
  user
    .command('reset-link')
    .description('print a one-time link that sets a new password, valid for one hour')
    .requiredOption('--email <email>', 'the login of the member')
    .action(async (options: { email: string }) => {
      const { printResetLink } = await import('./command/user-reset-link.ts')
      await printResetLink(parseConfig(env), options)
    })
  user
    .command('reset-second-factor')
    .description('remove the second factor of a member who lost it, and end their sessions')
    .requiredOption('--email <email>', 'the login of the member')
    .action(async (options: { email: string }) => {
      const { resetFactorOf } = await import('./command/user-reset-second-factor.ts')
      await resetFactorOf(parseConfig(env), options)
    })
}

function addGroupCommands(company: Command, env: NodeJS.ProcessEnv): void {
  company
    .command('map-group')
    .description('let a group at the identity provider grant a role at sign-in')
    .requiredOption('--company <id>', 'id of the company')
    .requiredOption('--group <name>', 'name of the group, as the identity provider sends it')
    .requiredOption('--role <role>', 'OWNER, ADMIN, ANALYST or VIEWER')
    .addOption(repeatable('--workspace <id>', 'for ANALYST and VIEWER', 'none'))
    .action(async (options: MapOptions) => {
      const { mapGroup } = await import('./command/map-group.ts')
      await mapGroup(parseConfig(env), options)
    })
  company
    .command('unmap-group')
    .description('stop a group from granting a role')
    .requiredOption('--company <id>', 'id of the company')
    .requiredOption('--group <name>', 'name of the group')
    .action(async (options: { company: string; group: string }) => {
      const { unmapGroup } = await import('./command/map-group.ts')
      await unmapGroup(parseConfig(env), options)
    })
  company
    .command('list-groups')
    .description('print the groups that grant a role, one line of JSON each')
    .requiredOption('--company <id>', 'id of the company')
    .action(async (options: { company: string }) => {
      const { listGroups } = await import('./command/map-group.ts')
      await listGroups(parseConfig(env), options)
    })
}

function addLedgerCommands(program: Command, { env }: CommandContext): void {
  program
    .command('migrate')
    .description('apply pending database migrations')
    .action(async () => {
      const { migrateDatabase: migrateOnly } = await import('./command/migrate.ts')
      await migrateOnly(parseConfig(env))
    })

  program
    .command('verify')
    .description(
      'recompute the chain and the tree of every workspace; exit with code 1 if one is broken',
    )
    .action(async () => {
      const { verify } = await import('./command/verify.ts')
      await verify(parseConfig(env))
    })

  program
    .command('archive')
    .description('move events to the archive')
    .option(
      '--before <time>',
      "archive events received before this time (default: those past their plan's hot time)",
    )
    .action(async (options: { before?: string }) => {
      const { archiveEvents } = await import('./command/archive.ts')
      await archiveEvents(parseConfig(env), options)
    })

  program
    .command('secret-key')
    .description('manage the secret key')
    .command('accept')
    .description(
      'make the configured secret key the one that this database requires; stop all nodes first',
    )
    .action(async () => {
      const { acceptKey } = await import('./command/accept-secret-key.ts')
      await acceptKey(parseConfig(env))
    })

  addSigningCommands(program, env)

  program
    .command('openapi')
    .description('print the OpenAPI document')
    .action(async () => {
      const { printOpenapi } = await import('./command/openapi.ts')
      await printOpenapi()
    })
}

function addBackupCommands(program: Command, { env }: CommandContext): void {
  program
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
      const { backUp } = await import('./command/backup/backup.ts')
      await backUp(parseConfig(env), options)
    })

  program
    .command('restore')
    .description('load a backup into an empty database, and verify it')
    .requiredOption('--from <folder>', 'the folder of the backup')
    .option('--check-only', 'only check that the backup is complete and undamaged')
    .option('--json', 'print one line of JSON; the output of the verification goes to stderr')
    .action(async (options: RestoreCommandOptions) => {
      const { restore } = await import('./command/backup/restore.ts')
      await restore(parseConfig(env), options)
    })
}

function addSigningCommands(program: Command, env: NodeJS.ProcessEnv): void {
  program
    .command('signing-key')
    .description('manage the key that signs checkpoints')
    .command('rotate')
    .description('replace the key that is derived from the secret key; both sign for 30 days')
    .action(async () => {
      const { rotateSigningKey } = await import('./command/rotate-signing-key.ts')
      await rotateSigningKey(parseConfig(env))
    })

  program
    .command('ledger-fork')
    .description(
      'report or accept a chain that the signer refuses, or a lost workspace, such as after restoring a backup',
    )
    .requiredOption('--workspace <id>', 'id of the workspace')
    .option('--accept-size <events>', 'number of events to accept; without it, only report')
    .option('--accept-lost', 'accept that the whole workspace is lost')
    .action(async (options: ForkOptions) => {
      const { forkLedger } = await import('./command/fork-ledger.ts')
      await forkLedger(parseConfig(env), options)
    })
}

function addWitness(program: Command, { stopSignals }: CommandContext): void {
  program
    .command('witness')
    .description("cosign the checkpoints of another party's ledgers until SIGTERM")
    .requiredOption('--listen <address>', 'address and port, such as 127.0.0.1:8090')
    .requiredOption(
      '--log-key <key>',
      'a public key from /.well-known/annals.json of the log; can be repeated',
      collect,
    )
    .requiredOption('--origin-prefix <prefix>', 'which logs, such as audit.example/')
    .option(
      '--name <name>',
      'name of this witness, such as witness.example',
      'annals.local/witness',
    )
    .option('--folder <folder>', 'where its key and its state are', 'annals-witness')
    .action(async (options: WitnessCommandOptions) => {
      const { runWitness } = await import('./command/witness.ts')
      await runWitness(options, stopSignals)
    })
}

/**
 * Runs the command that the arguments name, and sets the exit code. Returns false if a stop signal has set it:
 * the process then exits once it has left the engine.
 */
export async function runCommand(context: CommandContext): Promise<boolean> {
  let outputError: Error | null = null
  // Unhandled, these errors would end the process before it stops the engine.
  process.stdout.on('error', (error) => (outputError ??= error))
  process.stderr.on('error', () => {})

  try {
    await createProgram(context).parseAsync()
  } catch (error) {
    if (Number(process.exitCode ?? 0) > 128) return false
    const sentence = await messageFor(error)
    process.stderr.write(sentence === null ? `${inspect(error)}\n` : `annals: ${sentence}\n`)
    process.exitCode = 1
  }
  await flush(process.stdout)
  reportOutputError(outputError)
  await flush(process.stderr)
  return true
}

/** A closed pipe (EPIPE) gets no message, because the operator closed it. */
function reportOutputError(error: Error | null): void {
  if (error === null) return
  process.exitCode = 1
  if ('code' in error && error.code === 'EPIPE') return
  process.stderr.write(
    `annals: The command finished, but its output could not be written: ${error.message}. Its changes were saved.\n`,
  )
}

/** Resolves when all output has been written, or writing has failed. */
async function flush(stream: NodeJS.WriteStream): Promise<void> {
  // A failed write emits its error on a later tick.
  await new Promise(setImmediate)
  // A full disk refuses even an empty write, so a command that printed nothing must not try one.
  if (stream.writableLength > 0) await new Promise((resolve) => void stream.write('', resolve))
}

/** A message the operator can act on, or null for a bug, which is printed with its stack trace. */
async function messageFor(error: unknown): Promise<string | null> {
  if (error instanceof OperatorError) return error.message
  // Imported last, because it loads the database client, which takes as long as many commands.
  const { isRetryable, messageOf } = await import('./platform/pg/pg-error.ts')
  if (!isRetryable(error)) return null
  return `The command failed because of a database error: ${messageOf(error)}. Run it again later.`
}
