import { type TSchema, Type } from 'typebox'
import { CSV_HEADER } from '../../outlet/export/format/format-csv.ts'
import { FILE_EXAMPLES } from '../openapi/examples.ts'
import { EventRecord } from './event.ts'
import { named } from './named.ts'

const Text = (description: string, pattern: string) =>
  Type.Optional(Type.String({ pattern, description }))

const Sealed = Type.Object(partsOf('The commitment to', '^[0-9a-f]{64}$'), {
  description:
    'The commitments that the hash covers. Erasure is planned: an erased part will be null, but its commitment will remain.',
})

/** One line of a JSONL export, and an event in the dashboard. */
export const ExportRow: TSchema = named(
  'ExportRow',
  Type.Object(
    {
      ...EventRecord.properties,
      sealed: Sealed,
      salts: Type.Object(partsOf('The salt of', '^[0-9a-f]{32}$'), {
        description:
          'The salts for recomputing the commitments. Erasure is planned: an erased part will have none.',
      }),
    },
    {
      description:
        'An event with everything that is needed to recompute its `hash` (see docs/chain-format.md). Later versions can add fields.',
    },
  ),
)

const { actor: _actor, resource: _resource, metadata: _metadata, ...core } = EventRecord.properties

/** The line of an event that the filters skip. */
export const ExportStub: TSchema = named(
  'ExportStub',
  Type.Object(
    {
      stub: Type.Literal(true, { description: 'Always true. Rows have no such field.' }),
      ...core,
      sealed: Sealed,
    },
    {
      description:
        'In an export with the evidence COMPLETE: an event that the filters skip, with everything that is needed to recompute its `hash`. Later versions can add fields.',
    },
  ),
)

function partsOf(what: string, pattern: string) {
  return {
    actor: Text(`${what} the actor.`, pattern),
    metadata: Text(`${what} the metadata.`, pattern),
    resource: Text(`${what} the resource.`, pattern),
  }
}

/**
 * The 200 response of a download. A schema can only say that the body is text, so descriptions explain its
 * content.
 */
export const ExportFile = {
  description:
    'The rows, ordered by workspace ID and then by `seq`. After the last row come the trailers `x-row-count` and `x-content-sha256`, which refer to the uncompressed bytes. The job then has the same values as `rowsExported` and `sha256`. If anything goes wrong, the connection is cut, so a complete response is a complete file. HTTP/1.0 has no trailers: compare with the job instead.',
  headers: {
    'content-disposition': {
      description:
        'The file name, such as `acme-production-2026-03-01--2026-04-01.csv`: the company, the workspace, the name of the export if it has one, and the period in UTC.',
      schema: { type: 'string' },
    },
    'content-encoding': {
      description: '`gzip` if `Accept-Encoding` prefers it, otherwise missing.',
      schema: { type: 'string' },
    },
    trailer: {
      description: '`x-row-count, x-content-sha256`',
      schema: { type: 'string' },
    },
  },
  content: {
    'application/x-ndjson': {
      schema: {
        type: 'string',
        contentMediaType: 'application/x-ndjson',
        contentSchema: {
          anyOf: [
            { $ref: '#/components/schemas/ExportRow' },
            { $ref: '#/components/schemas/ExportStub' },
          ],
        },
        description:
          'JSON Lines in UTF-8: one object per line, each line ends with LF. `x-row` describes a line. If the evidence of the job is COMPLETE, there are also lines of the form `x-stub`, which start with `{"stub":true,`.',
      },
      example: FILE_EXAMPLES['application/x-ndjson'],
      'x-row': { $ref: '#/components/schemas/ExportRow' },
      'x-stub': { $ref: '#/components/schemas/ExportStub' },
    },
    'text/csv': {
      schema: {
        type: 'string',
        description:
          "RFC 4180 in UTF-8 without a byte order mark: a header line, then one line per row, each ending with CR LF. A missing field is an empty cell, and `metadata` is JSON. To keep spreadsheets from running cells as formulas, a `'` is added at the start of a cell that begins with `=`, `+`, `-`, `@`, a tab, a line break or `'`. A `'` is also added before a `=`, `+`, `-` or `@` (or its full-width form) that follows a `;`, a tab or the start of the cell, with only blanks in between. CSV has no `sealed` and `salts`: to recompute hashes or to get unchanged values, export JSONL.",
      },
      example: FILE_EXAMPLES['text/csv'],
      'x-columns': CSV_HEADER.trimEnd().split(','),
    },
  },
}

/** The 200 response of an evidence pack. */
export const EvidencePack = {
  description:
    'A ZIP archive with `events.jsonl` or `events.csv`, `manifest.json`, `annals-verify.mjs` and `README.txt`. If the download fails, the connection is cut, so a complete response is a complete archive.',
  headers: {
    'content-disposition': {
      description: 'The file name, as for the export itself, with the extension `zip`.',
      schema: { type: 'string' },
    },
  },
  content: {
    'application/zip': {
      schema: { type: 'string', format: 'binary', description: 'The archive.' },
      example: 'PK…',
    },
  },
}
