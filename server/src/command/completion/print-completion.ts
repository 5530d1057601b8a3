import type { Command } from 'commander'
import { bashScript } from './bash-script.ts'
import { completedCommands, type Shell } from './command-tree.ts'
import { fishScript } from './fish-script.ts'
import { zshScript } from './zsh-script.ts'
import { printEscaped } from '../output/print.ts'

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript }

/** `annals completion`: a script that the shell loads. */
export function printCompletion(program: Command, shell: Shell): void {
  printEscaped(SCRIPTS[shell](completedCommands(program)))
}
