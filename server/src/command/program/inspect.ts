import type { Command } from 'commander'
import { examples } from './command-context.ts'

/** Commands that show something and change nothing. */
export function addInspectCommands(program: Command): void {
  const openapi = program
    .command('openapi')
    .description('print the OpenAPI document')
    .action(async () => {
      const { printOpenapi } = await import('../openapi.ts')
      await printOpenapi()
    })
  examples(openapi, 'annals openapi > annals.json')
}
