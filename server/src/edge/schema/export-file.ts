import { type TSchema, Type } from 'typebox'
import { CSV_HEADER } from '../../outlet/export/format-csv.ts'
import { Nullable } from './common.ts'
import { EventRecord } from './event.ts'

const Hex64 = { pattern: '^[0-9a-f]{64}$' }
const Text = Type.Optional(Type.String())
const ERASED = 'Null when the event had none, and when it was erased: then `sealed` still names it.'

/** One line of a JSONL export. It appears in the OpenAPI document's `components.schemas` under this name. */
export const ExportRow: TSchema = Type.Object(
  {
    ...EventRecord.properties,
    seq: Type.Integer({
      minimum: 1,
      description: 'The place in the workspace’s chain, from 1 without gaps. A filter leaves gaps.',
    }),
    timestamp: { ...EventRecord.properties.timestamp, description: 'When it happened, in UTC.' },
    receivedAt: { ...EventRecord.properties.receivedAt, description: 'When Annals received it.' },
    actor: {
      ...Nullable(Type.Object({ id: Text, email: Text, role: Text })),
      description: `Who did it. ${ERASED}`,
    },
    resource: {
      ...Nullable(Type.Object({ type: Text, id: Text })),
      description: `What it was done to. ${ERASED}`,
    },
    metadata: { ...EventRecord.properties.metadata, description: `What else was sent. ${ERASED}` },
    sealed: Type.Object(partsOf(Hex64), {
      description: 'The commitments that the hash covers in place of the three parts.',
    }),
    salts: Type.Object(partsOf({ pattern: '^[0-9a-f]{32}$' }), {
      description: 'What recomputing a commitment takes. An erased part has none.',
    }),
  },
  {
    description:
      'An event with everything that recomputing its `hash` takes (docs/chain-format.md). Later versions may add fields.',
  },
)

function partsOf(hex: { pattern: string }) {
  const commitment = Type.Optional(Type.String(hex))
  return { actor: commitment, metadata: commitment, resource: commitment }
}

/**
 * The 200 response of a download. A schema can only say that the body is text, so descriptions explain its
 * content.
 */
export const ExportFile = {
  description:
    'The rows: workspace by workspace in the order of their ids, each in the order of its chain (`seq`). After the last row come the trailers `x-row-count` and `x-content-sha256`, of the uncompressed bytes, which the job then has too (`rowsExported`, `sha256`). Whatever goes wrong on the way cuts the connection, so a body that has its end is whole. HTTP/1.0 has no trailers: compare with the job.',
  headers: {
    'content-disposition': Type.String({ description: 'A file name.' }),
    'content-encoding': Type.String({
      description: '`gzip`, when `Accept-Encoding` prefers it; absent otherwise.',
    }),
    trailer: Type.String({ description: '`x-row-count, x-content-sha256`' }),
  },
  content: {
    'application/x-ndjson': {
      schema: Type.String({
        description:
          'JSON Lines in UTF-8: one object a line, each line ends with LF. `x-row` describes a line.',
      }),
      'x-row': { $ref: '#/components/schemas/ExportRow' },
    },
    'text/csv': {
      schema: Type.String({
        description:
          "RFC 4180 in UTF-8 without a byte order mark: a header line, then one line a row, each ends with CR LF. An absent field is an empty cell, `metadata` is JSON. To keep spreadsheets from running cells as formulas, a `'` is added at the start of a cell that begins with `=`, `+`, `-`, `@`, a tab, a line break or `'`. A `'` is also added before a `=`, `+`, `-` or `@` (or its full-width form) that follows a `;`, a tab or the start of the cell, with only blanks in between. JSONL keeps the values unchanged. It has no `sealed` and `salts`: to recompute hashes, export JSONL.",
      }),
      'x-columns': CSV_HEADER.trimEnd().split(','),
    },
  },
}
