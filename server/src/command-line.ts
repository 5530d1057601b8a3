import { inspect } from 'node:util'
import { Command } from 'commander'
import { addClientCommands } from './command/client/program.ts'
import { addBackupCommands } from './command/program/backup.ts'
import { type CommandContext, examples } from './command/program/command-context.ts'
import { addCompanyCommands } from './command/program/company.ts'
import { addHelp } from './command/program/help.ts'
import { addInspectCommands } from './command/program/inspect.ts'
import { addKeyCommands } from './command/program/key.ts'
import { addLedgerCommands } from './command/program/ledger.ts'
import { addServiceCommands } from './command/program/service.ts'
import { addUserCommands } from './command/program/user.ts'
import { readVersion } from './command/program/version.ts'
import { addWitnessCommand } from './command/program/witness.ts'
import { printNotes } from './command/output/print.ts'
import { OperatorError } from './errors.ts'

/** All commands. Each imports its code when it runs: loading the whole service takes over a second of CPU time. */
export function createProgram(context: CommandContext): Command {
  const program = new Command('annals')
    .description('Audit-event service')
    .version(`annals ${readVersion()}`, '-V, --version', 'print the version')
    .showHelpAfterError()
    .enablePositionalOptions()
  examples(program, 'annals serve', 'annals doctor', 'annals company list')
  addServiceCommands(program, context)
  addCompanyCommands(program, context)
  addUserCommands(program, context)
  addLedgerCommands(program, context)
  addKeyCommands(program, context)
  addBackupCommands(program, context)
  addWitnessCommand(program, context)
  addClientCommands(program, context)
  addInspectCommands(program, context)
  addHelp(program)
  return program
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
    printNotes(...linesOf(sentence === null ? inspect(error) : `annals: ${sentence}`))
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
  printNotes(
    `annals: The command finished, but its output could not be written: ${error.message}. Its changes were saved.`,
  )
}

/** Resolves when all output has been written, or writing has failed. */
async function flush(stream: NodeJS.WriteStream): Promise<void> {
  // A failed write emits its error on a later tick.
  await new Promise(setImmediate)
  // A full disk refuses even an empty write, so a command that printed nothing must not try one.
  if (stream.writableLength > 0) await new Promise((resolve) => void stream.write('', resolve))
}

/** A message can quote others, so all lines except the first are indented: none of them looks like a message. */
function linesOf(message: string): string[] {
  const [first = '', ...others] = message.split('\n')
  return [first, ...others.map((line) => (line.startsWith('  ') ? line : `  ${line}`))]
}

/** A message the operator can act on, or null for a bug, which is printed with its stack trace. */
async function messageFor(error: unknown): Promise<string | null> {
  if (error instanceof OperatorError) return error.message
  // Imported last, because it loads the database client, which takes as long as many commands.
  const { isRetryable, messageOf } = await import('./platform/pg/pg-error.ts')
  if (!isRetryable(error)) return null
  return `The command failed because of a database error: ${messageOf(error)}. Run it again later.`
}
