import type { Command } from 'commander'
import { addEventCommands } from './event/event-program.ts'
import { addExportCommands } from './export/export-program.ts'
import type { ClientContext } from './run-client.ts'
import { addWebhookCommands } from './webhook/webhook-program.ts'

/** Adds the commands that are clients of `/v1`. They import the rest only when they run. */
export function addClientCommands(program: Command, context: ClientContext): void {
  addEventCommands(program, context)
  addExportCommands(program, context)
  addWebhookCommands(program, context)
}
