import { Argument, type Command } from 'commander'
import { SHELLS, type Shell } from '../completion/command-tree.ts'
import type { DoctorOptions } from '../doctor/run-doctor.ts'
import { type CommandContext, examples } from './command-context.ts'

/** Commands that show something and change nothing. */
export function addInspectCommands(program: Command, context: CommandContext): void {
  addDoctor(program, context)
  addConfig(program, context)
  addCompletion(program)

  const openapi = program
    .command('openapi')
    .description('print the OpenAPI document')
    .action(async () => {
      const { printOpenapi } = await import('../print-openapi.ts')
      await printOpenapi()
    })
  examples(openapi, 'annals openapi > annals.json')
}

function addDoctor(program: Command, { env }: CommandContext): void {
  const doctor = program
    .command('doctor')
    .description('check this installation; exit with code 1 if a check fails')
    .option('--backup <folder>', 'also check the age of the backup in this folder')
    .option('--json', 'print one line of JSON')
    .action(async (options: DoctorOptions) => {
      const { runDoctor } = await import('../doctor/run-doctor.ts')
      await runDoctor(env, options)
    })
  examples(doctor, 'annals doctor', 'annals doctor --backup /backups/annals --json')
}

function addConfig(program: Command, { env }: CommandContext): void {
  const config = program.command('config').description('show the configuration')
  examples(config, 'annals config print')
  const print = config
    .command('print')
    .description('print every variable, its value and where it comes from, without secrets')
    .option('--json', 'print one line of JSON')
    .action(async (options: { json?: true }) => {
      const { printConfig } = await import('../config/print-config.ts')
      printConfig(env, options)
    })
  examples(print, 'annals config print', 'annals config print --json')
}

function addCompletion(program: Command): void {
  const completion = program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .action(async (shell: Shell) => {
      const { printCompletion } = await import('../completion/print-completion.ts')
      printCompletion(program, shell)
    })
  examples(
    completion,
    'annals completion bash > ~/.annals-completion',
    'annals completion fish > ~/.config/fish/completions/annals.fish',
  )
}
