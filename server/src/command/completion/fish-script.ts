import type { CompletedCommand } from './command-tree.ts'

export function fishScript(commands: readonly CompletedCommand[]): string {
  const known = commands.slice(1).map(({ path }) => `'${path}'`)
  return `# Completion of annals for fish. To use it, run this once:
#   annals completion fish > ~/.config/fish/completions/annals.fish
function __annals_at
  set -l at annals
  for word in (commandline -opc)[2..-1]
    if contains -- "$at $word" ${known.join(' ')}
      set at "$at $word"
    end
  end
  test "$at" = "$argv"
end
complete -c annals -f
${commands.map(linesOf).join('')}`
}

function linesOf({ path, words, valued }: CompletedCommand): string {
  const condition = `complete -c annals -n '__annals_at ${path}'`
  const lines = words.map(({ word, description }) => {
    const option = valued.find(({ flag }) => flag === word)
    const name = word.startsWith('--') ? `-l ${word.slice(2)}` : `-a ${word}`
    const text = description === '' ? '' : ` -d ${quote(description)}`
    return `${condition} ${name}${valueOf(option)}${text}\n`
  })
  return lines.join('')
}

function valueOf(option: CompletedCommand['valued'][number] | undefined): string {
  if (option === undefined) return ''
  if (option.isFolder) return " -r -a '(__fish_complete_directories)'"
  return option.choices.length > 0 ? ` -x -a '${option.choices.join(' ')}'` : ' -x'
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`
}
