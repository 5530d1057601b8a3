import type { Command, Option } from 'commander'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** `choices` is empty if any text is valid. */
type ValuedOption = { flag: string; choices: readonly string[]; isFolder: boolean }

/** What can follow a command: commands below it, and its options. */
export type CompletedCommand = {
  /** Such as `annals company list`. */
  path: string
  words: { word: string; description: string }[]
  /** Options with a value. */
  valued: ValuedOption[]
}

/** Every command, read from the program itself, so that completion is never out of date. */
export function completedCommands(command: Command, above = ''): CompletedCommand[] {
  const path = `${above}${command.name()}`
  const help = command.createHelp()
  const options = help.visibleOptions(command).filter(({ long }) => typeof long === 'string')
  const subcommands = help.visibleCommands(command).filter((child) => child.name() !== 'help')
  const [choices = []] = command.registeredArguments.map(({ argChoices }) => argChoices ?? [])
  const words = [
    ...subcommands.map((child) => ({ word: child.name(), description: child.description() })),
    ...choices.map((word) => ({ word, description: '' })),
    ...options.map(({ long, description }) => ({ word: long ?? '', description })),
  ]
  const valued = options.filter(({ required }) => required).map(valuedOption)
  const below = subcommands.flatMap((child) => completedCommands(child, `${path} `))
  return [{ path, words, valued }, ...below]
}

function valuedOption({ long, flags, argChoices }: Option): ValuedOption {
  return { flag: long ?? '', choices: argChoices ?? [], isFolder: flags.includes('<folder>') }
}

/** The patterns of a `case` for options whose value a shell can't know, or can. */
export function optionCases(
  commands: readonly CompletedCommand[],
  replyOf: (option: ValuedOption) => string,
): string {
  const all = commands.flatMap(({ path, valued }) =>
    valued.map((option) => ({ pattern: `'${path} ${option.flag}'`, option })),
  )
  const isKnown = ({ choices, isFolder }: ValuedOption) => isFolder || choices.length > 0
  const known = all.filter(({ option }) => isKnown(option))
  const unknown = all.filter(({ option }) => !isKnown(option)).map(({ pattern }) => pattern)
  const lines = known.map(
    ({ pattern, option }) => `    ${pattern}) ${replyOf(option)}; return ;;\n`,
  )
  return `${lines.join('')}    ${unknown.join('|')}) return ;;\n`
}

/** A pattern of a `case` that matches every command below the program. */
export function commandPattern(commands: readonly CompletedCommand[]): string {
  const below = commands.slice(1).map(({ path }) => `'${path}'`)
  return below.join('|')
}
