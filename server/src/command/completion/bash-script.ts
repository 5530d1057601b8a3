import { commandPattern, type CompletedCommand, optionCases } from './command-tree.ts'

/** Works with bash 3.2, which macOS has. */
export function bashScript(commands: readonly CompletedCommand[]): string {
  const values = optionCases(commands, ({ choices, isFolder }) => {
    const reply = isFolder ? '-d' : `-W '${choices.join(' ')}'`
    return `COMPREPLY=($(compgen ${reply} -- "$current"))`
  })
  const words = commands.map(
    ({ path, words }) => `    '${path}') words='${words.map(({ word }) => word).join(' ')}' ;;\n`,
  )
  return `# Completion of annals for bash. To use it, add this line to ~/.bashrc:
#   source <(annals completion bash)
_annals() {
  local current=\${COMP_WORDS[COMP_CWORD]} at=annals words='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
      ${commandPattern(commands)}) at="$at \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at \${COMP_WORDS[COMP_CWORD - 1]}" in
${values}  esac
  case "$at" in
${words.join('')}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _annals annals
`
}
