import { Type } from 'typebox'
import { DateTime, Nullable, STRICT, Uuid } from './common.ts'
import { Evidence, Format, JobId, StoredFilters } from './export.ts'
import { ExportStub } from './export-file.ts'
import { named } from './named.ts'
import { Hashes, Note, Vkey } from './proof.ts'

const Seq = (description: string) => Nullable(Type.Integer({ minimum: 1, description }))

const LeafProof = (index: string, description: string) =>
  Type.Object(
    {
      index: Type.Integer({ minimum: 0, description: index }),
      size: Type.Integer({ minimum: 1, description: 'The size of the tree.' }),
      hashes: Hashes('The proof of RFC 6962, section 2.1.1, in base64.'),
    },
    { ...STRICT, description },
  )

const ManifestWorkspace = named(
  'ManifestWorkspace',
  Type.Object(
    {
      workspaceId: { ...Uuid, description: 'The workspace.' },
      origin: Type.String({ description: 'The origin of the checkpoint.' }),
      vkey: Vkey,
      firstSeq: Seq(
        'The `seq` of the first line of the workspace in the file. Null if there is none.',
      ),
      lastSeq: Seq('The `seq` of its last line. Null if there is none.'),
      checkpoint: Note,
      lastLeafProof: Nullable(
        LeafProof(
          'The index of the event in the tree: `lastSeq` − 1, or that of `before` if there are no lines.',
          'The proof that the event `lastSeq` is in the tree of the checkpoint. If there are no lines, it is the proof of `before`, or null.',
        ),
      ),
      before: Type.Optional({
        ...ExportStub,
        description:
          'With the evidence COMPLETE and the filter `from`: the event before the range, which shows that the file starts early enough. Left out if there is none, or if its archive file was deleted.',
      }),
      after: Type.Optional({
        ...ExportStub,
        description:
          'With the evidence COMPLETE: the event after the range, which shows that the file ends late enough. Left out if the checkpoint doesn’t cover it, if its archive file was deleted, or if the export has archived events only.',
      }),
      afterLeafProof: Type.Optional(
        LeafProof('The index of `after`.', 'The proof that `after` is in the same tree.'),
      ),
    },
    { ...STRICT, description: 'A workspace of the export.' },
  ),
)

export const ExportManifest = named(
  'ExportManifest',
  Type.Object(
    {
      version: Type.Literal(1, { description: 'The version of the format.' }),
      jobId: JobId,
      format: Format,
      filters: StoredFilters,
      rows: Type.Integer({ minimum: 0, description: 'The number of rows, without stubs.' }),
      sha256: Type.String({
        pattern: '^[0-9a-f]{64}$',
        description: 'The SHA-256 of the uncompressed file, in hexadecimal.',
      }),
      evidence: Evidence,
      snapshotAt: Type.Optional(
        Nullable(
          Type.String({
            ...DateTime,
            description:
              'With the evidence COMPLETE: when the ranges of the export were fixed. Events that were received later are not part of it. Null if the export has archived events only.',
          }),
        ),
      ),
      workspaces: Type.Array(ManifestWorkspace, {
        maxItems: 101,
        description:
          'The workspaces of the export, in the order of the file. With the evidence COMPLETE, this includes workspaces without events in the range.',
      }),
    },
    {
      ...STRICT,
      description:
        'Links an export’s file to the signed ledger (see docs/chain-format.md). The manifest itself is not signed.',
    },
  ),
)
