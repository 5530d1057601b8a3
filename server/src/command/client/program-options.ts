import { type Command, InvalidArgumentError, Option } from 'commander'

const ENVIRONMENT = `
Environment:
  ANNALS_API_KEY  a key from the dashboard
  ANNALS_API_URL  address of the service (default: http://127.0.0.1:8080)`

/** A group of commands, such as `annals events`. */
export function addGroup(program: Command, name: string, description: string): Command {
  return program.command(name).description(description).showHelpAfterError(false)
}

/** A command of a group, with examples in its help. */
export function addClientCommand(
  group: Command,
  usage: string,
  { description, examples }: { description: string; examples: readonly string[] },
): Command {
  const lines = examples.map((example) => `  annals ${group.name()} ${example}\n`).join('')
  return group
    .command(usage)
    .description(description)
    .option('--json', 'print JSON, one object per line')
    .addHelpText('after', `\nExamples:\n${lines}${ENVIRONMENT}`)
    .showHelpAfterError('Add --help for the options and examples.')
}

/** An option that can be repeated. */
export function repeated(flags: string, description: string): Option {
  return new Option(flags, `${description}; can be repeated`)
    .argParser((value: string, previous: string[]) => [...previous, value])
    .default([], 'none')
}

export function filterOption(names: readonly string[]): Option {
  return repeated('--filter <name=value>', `only events that match: ${names.join(', ')}`)
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
