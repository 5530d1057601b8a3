const ORIGIN = 'annals.example.com/018f0000-0000-7000-8000-00000000a001'
/** The hash of the example event, whose tree has no other leaf. */
const ROOT = '0EVUUVBCbl6aA91B4+7g5Rm77BBxyszVdO4w5/LKHUw='
const SIGNATURE =
  'rb0n1kq1AWhYkO0xXHq1r3n2nYhB1m0F6cGm7q2c3hVtJYgqv7Zp3m5v1x9Cq8mQm7tWc0o4yqkX2m3tqk1oYV9Jp5Y='

/** A signed note, as text. The signature is made up. */
export const CHECKPOINT_EXAMPLE = `${ORIGIN}\n1\n${ROOT}\n\n— ${ORIGIN} ${SIGNATURE}\n`

/** A C2SP tlog-proof of the only leaf of a tree. */
export const PROOF_EXAMPLE = `c2sp.org/tlog-proof@v1\nindex 0\n\n${CHECKPOINT_EXAMPLE}`

const VKEY = `${ORIGIN}+adbd27d6+AdXDkLbJHq0sYVn3nC0vH0m8cRk3q1t2u4v5w6x7y8z9`

export const PROOF_EXAMPLES = {
  Checkpoint: {
    origin: ORIGIN,
    size: 1,
    root: ROOT,
    note: CHECKPOINT_EXAMPLE,
    vkey: VKEY,
    signedAt: '2024-05-06T07:08:13.000Z',
  },
  ConsistencyProof: { from: 1, to: 2, hashes: [ROOT] },
  ServiceKeys: {
    publicKeys: [
      {
        publicKey: '1cOQtskerSxhWfecLS8fSbxxGTerW3a7i/nDrHvLzP0=',
        from: '2024-05-06T07:08:13.000Z',
        to: null,
      },
    ],
    formats: ['c2sp.org/signed-note', 'c2sp.org/tlog-checkpoint'],
  },
}

/** The parts of an event's proof without the event. */
export const EVENT_PROOF_EXAMPLE = {
  index: 0,
  size: 1,
  hashes: [],
  checkpoint: CHECKPOINT_EXAMPLE,
  vkey: VKEY,
}

/** A workspace of a manifest without its id. */
export const MANIFEST_WORKSPACE_EXAMPLE = {
  origin: ORIGIN,
  vkey: VKEY,
  firstSeq: 1,
  lastSeq: 1,
  checkpoint: CHECKPOINT_EXAMPLE,
  lastLeafProof: { index: 0, size: 1, hashes: [] },
}
