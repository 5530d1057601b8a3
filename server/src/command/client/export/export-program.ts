import { type Command, Option } from 'commander'
import type { CreateExportOptions } from './create-export.ts'
import { FILTER_NAMES } from '../filter-names.ts'
import {
  addClientCommand,
  addGroup,
  filterOption,
  runLazily,
  wholeNumber,
  workspaceOption,
} from '../program-options.ts'
import type { ClientContext } from '../run-client.ts'
import type { SaveOptions } from './save-export.ts'

type Json = { json?: boolean }
const WAIT = 'wait while archived events are being restored'
const FORCE = 'replace a file that already exists'
const MANIFEST = 'also save what links the file to the signed ledger, as PATH.manifest.json'

/** `annals exports` */
export function addExportCommands(program: Command, context: ClientContext): void {
  const exports = addGroup(program, 'exports', {
    description: 'create and download exports',
    example: 'create --filter category=auth --download events.jsonl',
  })
  addCreate(exports, context)
  addDownload(exports, context)
}

function addCreate(exports: Command, context: ClientContext): void {
  addClientCommand(exports, 'create', {
    description: 'create an export of the events stored so far',
    examples: [
      'create --download events.jsonl --manifest',
      'create --format CSV --filter category=auth --download auth.csv',
      'create --source HOT_AND_ARCHIVED --from 2026-01-01T00:00:00Z --to 2026-07-01T00:00:00Z',
    ],
  })
    .addOption(
      new Option('--source <source>', 'hot events, archived ones, or both')
        .choices(['HOT', 'ARCHIVED', 'HOT_AND_ARCHIVED'])
        .default('HOT'),
    )
    .addOption(
      new Option('--format <format>', 'format of the file')
        .choices(['JSONL', 'CSV'])
        .default('JSONL'),
    )
    .addOption(
      new Option('--evidence <evidence>', 'COMPLETE also proves that no matching event is missing')
        .choices(['NONE', 'COMPLETE'])
        .default('NONE'),
    )
    .addOption(filterOption(FILTER_NAMES.export))
    .option('--from <time>', 'start of the time range, inclusive')
    .option('--to <time>', 'end of the time range, exclusive')
    .option('--limit <count>', 'the maximum number of rows', wholeNumber(1, 999_999_999_999_999))
    .option('--name <name>', 'a name for the export')
    .addOption(workspaceOption())
    .option('--download <path>', 'download the file as soon as the job is created')
    .option('--manifest', MANIFEST)
    .option('--force', FORCE)
    .option('--wait', WAIT)
    .action((options: CreateExportOptions & Json) =>
      runLazily(context, options, async () => (await import('./create-export.ts')).startExport),
    )
}

function addDownload(exports: Command, context: ClientContext): void {
  addClientCommand(exports, 'download <job> <path>', {
    description: 'download an export, and check that the file is complete',
    notes:
      '\nIf the download was interrupted, run the same command again. A complete file is kept.\n',
    examples: [
      'download 01a1e58b-8718-770d-814d-f7fe9c3f1129 events.jsonl',
      'download 01a1e58b-8718-770d-814d-f7fe9c3f1129 events.jsonl --manifest',
    ],
  })
    .option('--manifest', MANIFEST)
    .option('--force', FORCE)
    .option('--wait', WAIT)
    .action((jobId: string, path: string, options: SaveOptions & Json) =>
      runLazily(context, options, async () => {
        const { saveExport } = await import('./save-export.ts')
        return (command) => saveExport(command, { jobId, path }, options)
      }),
    )
}
