import { type Command, Option } from 'commander'
import { repeatable } from '../../program/command-context.ts'
import { FILTER_NAMES } from '../filter-names.ts'
import type { ListEventsOptions } from './list-events.ts'
import {
  addClientCommand,
  addGroup,
  filterOption,
  runLazily,
  wholeNumber,
  workspaceOption,
} from '../program-options.ts'
import type { ClientContext } from '../run-client.ts'
import type { SendOptions } from './send-events.ts'
import type { TailOptions } from './tail-events.ts'

type Json = { json?: boolean }

/** `annals events` */
export function addEventCommands(program: Command, context: ClientContext): void {
  const events = addGroup(program, 'events', {
    description: 'send, list and follow events',
    example: 'tail --filter category=auth',
  })
  addSend(events, context)
  addList(events, context)
  addTail(events, context)
}

function addSend(events: Command, context: ClientContext): void {
  addClientCommand(events, 'send', {
    description: 'store an event, or the events of a file',
    examples: [
      'send --category auth --action user.login --actor-id u-17 --metadata ip=192.0.2.1',
      'send --file events.jsonl',
      'send --file - < events.jsonl',
    ],
  })
    .option('--category <text>', 'category, such as auth')
    .option('--action <text>', 'action, such as user.login')
    .option('--actor-id <text>', 'who did it')
    .option('--actor-email <email>')
    .option('--actor-role <text>')
    .option('--resource-type <text>', 'what it was done to')
    .option('--resource-id <text>')
    .option('--project <id>', 'the project that the event belongs to')
    .option('--timestamp <time>', 'when it happened, such as 2026-11-19T08:00:00Z (default: now)')
    .addOption(repeatable('--metadata <key=value>', 'a metadata field, as text', 'none'))
    .option('--file <path>', 'JSON or JSONL with whole events; - reads standard input')
    .option('--idempotency-key <key>', 'store an event only once per key')
    .action((options: SendOptions & Json) =>
      runLazily(context, options, async () => (await import('./send-events.ts')).sendEvents),
    )
}

function addList(events: Command, context: ClientContext): void {
  addClientCommand(events, 'list', {
    description: 'print events that match',
    examples: [
      'list --limit 100',
      'list --filter category=auth --filter actorId=u-17 --json',
      'list --filter metadata.ip=192.0.2.1 --from 2026-11-01T00:00:00Z',
    ],
  })
    .addOption(filterOption(FILTER_NAMES.list))
    .option('--from <time>', 'start of the time range, inclusive')
    .option('--to <time>', 'end of the time range, exclusive')
    .addOption(
      new Option('--order <order>', 'newest or oldest first')
        .choices(['desc', 'asc'])
        .default('desc'),
    )
    .option('--limit <count>', 'the maximum number of events', wholeNumber(1, 1_000_000), 50)
    .addOption(workspaceOption())
    .action((options: ListEventsOptions & Json) =>
      runLazily(context, options, async () => (await import('./list-events.ts')).printEvents),
    )

  addClientCommand(events, 'get <id>', {
    description: 'print all fields of one event',
    examples: ['get 01a1e58b-86cd-79d1-ba4b-e1f947a45b58'],
  }).action((id: string, options: Json) =>
    runLazily(
      context,
      { ...options, id },
      async () => (await import('./list-events.ts')).printEvent,
    ),
  )
}

function addTail(events: Command, context: ClientContext): void {
  addClientCommand(events, 'tail', {
    description: 'print new events as they arrive, until Ctrl-C',
    examples: [
      'tail',
      'tail --last 20 --filter category=auth --filter category=billing',
      'tail --after 1200 --json > events.jsonl',
    ],
  })
    .addOption(filterOption(FILTER_NAMES.tail))
    .option('--last <count>', 'start with the last events', wholeNumber(0, 1_000_000), 0)
    .addOption(
      new Option(
        '--after <seq>',
        'start after the event with this sequence number; 0 starts at the first event',
      )
        .argParser(wholeNumber(0, 999_999_999_999_999))
        .conflicts('last'),
    )
    .addOption(workspaceOption())
    .action((options: TailOptions & Json) =>
      runLazily(context, options, async () => (await import('./tail-events.ts')).tailEvents, {
        isEndless: true,
      }),
    )
}
