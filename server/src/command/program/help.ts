import type { Command } from 'commander'
import { examples } from './command-context.ts'

/** `annals help`. It replaces commander's, which ignores all names after the first. */
export function addHelp(program: Command): void {
  const help = program
    .command('help')
    .description('print the help of a command')
    .argument('[command...]', 'its name, such as events send')
    .action((names: string[]) => printHelp(program, names))
  examples(help, 'annals help', 'annals help events send')
}

async function printHelp(command: Command, names: readonly string[]): Promise<void> {
  const [name, ...others] = names
  if (name === undefined) return command.outputHelp()
  const found = command.commands.find((child) => child.name() === name)
  if (found) return await printHelp(found, others)
  if (command.commands.length === 0)
    return command.error(`error: unknown command '${name}'`, { code: 'commander.unknownCommand' })
  // Fails, with a suggestion.
  await command.parseAsync([name], { from: 'user' })
}
