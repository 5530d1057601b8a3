import { type Command, InvalidArgumentError, Option } from 'commander'
import { examples, repeatable } from '../program/command-context.ts'
import { describeFilterNames } from './filter-names.ts'
import type { ClientCommand, ClientContext, ClientRunOptions } from './run-client.ts'

const ENVIRONMENT = `
Environment:
  ANNALS_API_KEY  a key from the dashboard
  ANNALS_API_URL  address of the service (default: http://127.0.0.1:8080)`

/** A group of commands, such as `annals events`. */
export function addGroup(
  program: Command,
  name: string,
  { description, example }: { description: string; example: string },
): Command {
  const group = program.command(name).description(description).showHelpAfterError(false)
  return examples(group, `annals ${name} ${example}`)
}

type CommandHelp = {
  description: string
  /** Printed before the examples. */
  notes?: string
  examples: readonly [string, ...string[]]
}

/** A command of a group, with examples in its help. */
export function addClientCommand(group: Command, usage: string, help: CommandHelp): Command {
  const command = group
    .command(usage)
    .description(help.description)
    .option('--json', 'print JSON, one object per line')
    .addHelpText('after', `${help.notes ?? ''}${ENVIRONMENT}`)
    .showHelpAfterError('Add --help for the options and examples.')
  const [first, ...others] = help.examples
  const lineOf = (example: string): string => `annals ${group.name()} ${example}`
  return examples(command, lineOf(first), ...others.map(lineOf))
}

export function filterOption(names: readonly string[]): Option {
  const description = `only events that match: ${describeFilterNames(names)}`
  return repeatable('--filter <name=value>', description, 'none')
}

export function workspaceOption(): Option {
  return new Option('--workspace <id>', 'for a company key: the workspace')
}

/** Parses a whole number between two limits. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
  }
}

/** Runs a command whose code `load` imports, so that other commands and `--help` don't load it. */
export async function runLazily<Options extends { json?: boolean }>(
  context: ClientContext,
  options: Options,
  load: () => Promise<(command: ClientCommand, options: Options) => Promise<void>>,
  runOptions?: ClientRunOptions,
): Promise<void> {
  const [{ runClient }, run] = await Promise.all([import('./run-client.ts'), load()])
  await runClient(context, options, run, runOptions)
}
