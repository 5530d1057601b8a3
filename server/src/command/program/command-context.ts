import { type Command, Option } from 'commander'
import type { Config } from '../../config.ts'
import type { StopSignals } from '../../platform/stop-signals.ts'

/** What commands get from the process. */
export type CommandContext = { env: NodeJS.ProcessEnv; stopSignals: StopSignals }

/** Loads the code of the configuration only for commands that need it, so that `--help` is fast. */
export async function readConfig({ env }: CommandContext): Promise<Config> {
  const { parseConfig } = await import('../../config.ts')
  return parseConfig(env)
}

/** An option that can be repeated. `ifMissing` says what its absence means. */
export const repeatable = (flags: string, description: string, ifMissing: string): Option =>
  new Option(flags, `${description}; can be repeated`)
    .argParser(collectValue)
    .default([], ifMissing)

export const collectValue = (value: string, previous: string[] = []): string[] => [
  ...previous,
  value,
]

/** Shows the choices in the help and in completion. The command checks the value, together with others. */
export function suggesting(flags: string, description: string, choices: readonly string[]): Option {
  const option = new Option(flags, description)
  option.argChoices = [...choices]
  return option
}

export const EXAMPLE_ID = '0198f2a4-5b1c-7d3e-8f60-2a4b6c8d0e1f'

/** The end of a command's help. Each line is a command that works as it is, except for ids and names. */
export function examples(command: Command, ...lines: readonly [string, ...string[]]): Command {
  const title = lines.length === 1 ? 'Example' : 'Examples'
  return command.addHelpText('after', `\n${title}:\n${lines.map((line) => `  ${line}\n`).join('')}`)
}
