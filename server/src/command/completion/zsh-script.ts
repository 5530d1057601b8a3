import { commandPattern, type CompletedCommand, optionCases } from './command-tree.ts'

export function zshScript(commands: readonly CompletedCommand[]): string {
  const values = optionCases(commands, ({ choices, isFolder }) =>
    isFolder ? '_files -/' : `compadd ${choices.join(' ')}`,
  )
  const words = commands.map(({ path, words }) => {
    const items = words.map(({ word, description }) =>
      quote(description ? `${word}:${description}` : word),
    )
    return `    '${path}') items=(${items.join(' ')}) ;;\n`
  })
  return `#compdef annals
# Completion of annals for zsh. To use it, add this line to ~/.zshrc, after compinit:
#   source <(annals completion zsh)
_annals() {
  local at=annals word
  local -a items
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at $word" in
      ${commandPattern(commands)}) at="$at $word" ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${values}  esac
  case "$at" in
${words.join('')}  esac
  _describe annals items
}
compdef _annals annals
`
}

/** In single quotes, only they end the text. */
function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
