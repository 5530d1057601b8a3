import type { Command } from 'commander'
import type { ListenOptions } from './listen-webhook.ts'
import {
  addClientCommand,
  addGroup,
  runLazily,
  wholeNumber,
  workspaceOption,
} from '../program-options.ts'
import type { ClientContext } from '../run-client.ts'

type Json = { json?: boolean }
type InWorkspace = Json & { workspace?: string }

/** `annals webhooks` */
export function addWebhookCommands(program: Command, context: ClientContext): void {
  const webhooks = addGroup(program, 'webhooks', {
    description: 'develop and test webhook receivers',
    example: 'listen --forward-to http://127.0.0.1:3000/webhooks',
  })
  addListen(webhooks, context)
  addClientCommand(webhooks, 'trigger [webhook]', {
    description: 'send a test delivery, and print how the receiver responded',
    examples: ['trigger', 'trigger 01a1e58b-9067-7965-9627-d1348011a791'],
  })
    .addOption(workspaceOption())
    .action((webhookId: string | undefined, options: InWorkspace) =>
      runLazily(
        context,
        { ...options, webhookId },
        async () => (await import('./trigger-webhook.ts')).triggerWebhook,
      ),
    )
  addClientCommand(webhooks, 'list', {
    description: 'print the webhooks of a workspace',
    examples: ['list', 'list --json'],
  })
    .addOption(workspaceOption())
    .action((options: InWorkspace) =>
      runLazily(context, options, async () => (await import('./list-webhooks.ts')).printWebhooks),
    )
}

const MODES = `
Without ANNALS_WEBHOOK_SECRET, the command creates a webhook for this session and deletes it at the
end. That needs a company key and, for a local receiver, a service with
ANNALS_WEBHOOK_DESTINATIONS=any. With ANNALS_WEBHOOK_SECRET, it verifies the deliveries of an existing
webhook, and with --webhook it also replays missed ones.
`

function addListen(webhooks: Command, context: ClientContext): void {
  addClientCommand(webhooks, 'listen', {
    description: 'receive, verify and print deliveries, until Ctrl-C',
    notes: MODES,
    examples: [
      'listen',
      'listen --forward-to http://127.0.0.1:3000/webhooks',
      'listen --port 4000 --webhook 01a1e58b-9067-7965-9627-d1348011a791',
    ],
  })
    .option(
      '--port <port>',
      'port of 127.0.0.1 to listen on; 0 chooses one',
      wholeNumber(0, 65_535),
      0,
    )
    .option(
      '--forward-to <url>',
      'forward verified deliveries, and respond with the status of this address',
    )
    .option('--url <url>', 'address at which the service reaches this receiver, such as a tunnel')
    .option('--webhook <id>', 'an existing webhook')
    .addOption(workspaceOption())
    .action((options: ListenOptions & Json) =>
      runLazily(
        context,
        { ...options, secret: context.env.ANNALS_WEBHOOK_SECRET || null },
        async () => (await import('./listen-webhook.ts')).listenForDeliveries,
        { isEndless: true, needsKey: false },
      ),
    )
}
