import { Type } from 'typebox'
import { CHECKPOINT_EXAMPLE, PROOF_EXAMPLE } from '../openapi/proof-examples.ts'
import { DateTime, STRICT } from './common.ts'
import { ExportRow } from './export-file.ts'
import { named } from './named.ts'

const HASH = '^[A-Za-z0-9+/]{43}=$'

export const Note = Type.String({
  description:
    'The signed checkpoint: a C2SP signed note of the origin, the size and the root, with one or more Ed25519 signatures, followed by the cosignatures of witnesses.',
})
export const Vkey = Type.String({
  description:
    'The verifier key of the newest signature, as in C2SP signed-note. A verifier must get its keys from a source that it trusts, not from here.',
})
export const Hashes = (description: string) =>
  Type.Array(Type.String({ pattern: HASH }), { maxItems: 64, description })

const CheckpointRecord = named(
  'Checkpoint',
  Type.Object(
    {
      origin: Type.String({ description: 'The name of the log. It never changes.' }),
      size: Type.Integer({ minimum: 0, description: 'The number of events in the tree.' }),
      root: Type.String({ pattern: HASH, description: 'The root of the tree, in base64.' }),
      note: Note,
      vkey: Vkey,
      signedAt: { ...DateTime, description: 'When it was signed.' },
    },
    { ...STRICT, description: 'The newest signed checkpoint of a workspace.' },
  ),
)

/** The 200 response of a checkpoint: as text, or as JSON if the request asks for it. */
export const CheckpointResponse = {
  description: 'The newest signed checkpoint.',
  content: {
    'text/plain': {
      schema: { type: 'string', description: 'The signed note.' },
      example: CHECKPOINT_EXAMPLE,
    },
    'application/json': { schema: CheckpointRecord },
  },
}

/** Like `CheckpointResponse`, but only as text, which C2SP tlog-tiles requires. */
export const NoteResponse = {
  description: 'The newest signed checkpoint.',
  content: { 'text/plain': CheckpointResponse.content['text/plain'] },
}

export const TileResponse = {
  description: 'The hashes or entries of a tile.',
  headers: {
    'cache-control': {
      description: 'A tile never changes, so it can be cached for long.',
      schema: { type: 'string' },
    },
  },
  content: {
    'application/octet-stream': {
      schema: { type: 'string', format: 'binary', description: 'The bytes of the tile.' },
      example: '32 bytes per hash',
    },
  },
}

/** `*` is the rest of the path. */
export const TileParams = Type.Object({
  workspaceId: Type.String(),
  '*': Type.String({
    description:
      'The tile, as C2SP tlog-tiles names it: `<L>/<N>` or `entries/<N>`, followed by `.p/<W>` for the first W of its hashes or entries. N has groups of three digits, such as `x001/234`.',
  }),
})

const TreeSize = (description: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description })

export const ConsistencyQuery = Type.Object(
  {
    from: TreeSize('The size of the older tree.'),
    to: Type.Optional(
      TreeSize(
        'The size of the newer tree, at most that of the newest checkpoint, which is the default.',
      ),
    ),
  },
  STRICT,
)

export const ConsistencyProof = named(
  'ConsistencyProof',
  Type.Object(
    {
      from: Type.Integer({ minimum: 0, description: 'The size of the older tree.' }),
      to: Type.Integer({ minimum: 0, description: 'The size of the newer tree.' }),
      hashes: Hashes('The proof of RFC 6962, section 2.1.2, in base64.'),
    },
    { ...STRICT, description: 'The proof that a tree extends an older one.' },
  ),
)

const EventProof = named(
  'EventProof',
  Type.Object(
    {
      event: ExportRow,
      index: Type.Integer({ minimum: 0, description: 'The index of the leaf: `seq` − 1.' }),
      size: Type.Integer({ minimum: 1, description: 'The size of the tree.' }),
      hashes: Hashes('The proof of RFC 6962, section 2.1.1, in base64, from the leaf to the root.'),
      checkpoint: Note,
      vkey: Vkey,
    },
    { ...STRICT, description: 'The proof that an event is in the tree of a signed checkpoint.' },
  ),
)

/** The 200 response of a proof: as JSON, or as text if the request asks for it. */
export const EventProofResponse = {
  description: 'The event and the proof, or only the proof as text.',
  content: {
    'application/json': { schema: EventProof },
    'text/plain': {
      schema: { type: 'string', description: 'A C2SP tlog-proof.' },
      example: PROOF_EXAMPLE,
    },
  },
}

export const ServiceKeys = named(
  'ServiceKeys',
  Type.Object(
    {
      publicKeys: Type.Array(
        Type.Object(
          {
            publicKey: Type.String({ pattern: HASH, description: '32 bytes in base64.' }),
            from: { ...DateTime, description: 'Since when it signs checkpoints.' },
            to: Type.Union([DateTime, Type.Null()], {
              description: 'Until when it signs. Null for the current key.',
            }),
          },
          { ...STRICT, description: 'An Ed25519 key.' },
        ),
        {
          description:
            'The keys that sign checkpoints, the oldest first. Empty if nothing is signed.',
        },
      ),
      formats: Type.Array(Type.String({ description: 'The name of a format.' }), {
        description: 'The formats of checkpoints, proofs, tiles and entries.',
      }),
    },
    { ...STRICT, description: 'What a verifier needs to know about this service.' },
  ),
)
