import assert from 'node:assert/strict'
import { createPublicKey, verify } from 'node:crypto'
import { type Checkpoint, readPublishedTree } from '../../../src/ledger/tree/checkpoint-store.ts'
import { extendFrontier, rootOf } from '../../../src/ledger/tree/merkle.ts'
import { TreeSigner, type TreeSignerOptions } from '../../../src/outlet/proof/signer.ts'
import type { WorkspaceId } from '../../../src/platform/id.ts'
import { createLogger } from '../../../src/platform/logger.ts'
import { parseSecretKey } from '../../../src/platform/secret/secret-key.ts'
import { systemClock } from '../../../src/platform/time/clock.ts'
import { query } from '../database/engine.ts'
import { eventually } from '../timing/eventually.ts'
import { SECRET_KEY, type TestApp } from '../app/start-app.ts'

/** A signer as a node has it, next to the service's own. */
export function createSigner(
  { app }: TestApp,
  options: Partial<TreeSignerOptions> = {},
): TreeSigner {
  const secretKey = parseSecretKey(SECRET_KEY)
  assert(secretKey)
  return new TreeSigner({
    database: app.database,
    archive: app.archive,
    keySource: { secretKey, configured: null, previous: null },
    originHost: 'annals.local',
    clock: systemClock,
    logger: createLogger('silent'),
    ...options,
  })
}

/** The public key that the signer signs with. */
export async function publicKeyOf(signer: TreeSigner): Promise<Buffer> {
  const keys = await signer.listKeys()
  return Buffer.from(keys.at(-1)?.publicKey ?? '', 'base64')
}

/** Signs until nothing is left to do. */
export async function signWhole(signer: TreeSigner, workspaceId: WorkspaceId): Promise<string> {
  for (;;) {
    const outcome = await signer.sign(workspaceId)
    if (outcome !== 'more') return outcome
  }
}

/** Signs everything now, in place of the service's own signer. */
export async function signEvents(annals: TestApp, workspaceId: WorkspaceId): Promise<void> {
  const signer = createSigner(annals)
  // The service's own signer can overtake it.
  await eventually(async () => assert.equal(await signWhole(signer, workspaceId), 'done'))
}

export async function sendEvents(
  annals: TestApp,
  key: string,
  count: number,
  category = 'proof',
): Promise<void> {
  for (let sent = 0; sent < count; sent += 100) {
    const events = Array.from({ length: Math.min(100, count - sent) }, (_, nth) => ({
      category,
      action: `event ${sent + nth}`,
      actor: { id: 'ada' },
      metadata: { nth: sent + nth },
    }))
    const { status, text } = await annals.call('POST', '/v1/events/batch', {
      key,
      body: { events },
    })
    assert(status < 300, text)
  }
}

export async function readCheckpoint(
  { app }: TestApp,
  workspaceId: WorkspaceId,
): Promise<Checkpoint | null> {
  return (await readPublishedTree(app.database.db, workspaceId)).checkpoint
}

export async function readRefusal({ app }: TestApp, workspaceId: WorkspaceId): Promise<string> {
  return (await readPublishedTree(app.database.db, workspaceId)).refusal ?? ''
}

/** The hashes of a chain in the database, in order. */
export async function readHashes(annals: TestApp, workspaceId: WorkspaceId): Promise<Buffer[]> {
  const rows = await query(
    annals.database.connection,
    `select encode(hash, 'hex') as hash from event where workspace_id = '${workspaceId}' order by seq`,
  )
  return rows.map((row) => Buffer.from(String(row['hash']), 'hex'))
}

/** Truncates the chain as someone with the database's password would, so that it is still intact. */
export async function cutChainOf(
  { database: { connection } }: TestApp,
  id: WorkspaceId,
  toSeq: number,
): Promise<void> {
  await query(connection, `delete from event where workspace_id = '${id}' and seq > ${toSeq}`)
  await query(
    connection,
    `update chain_head h set seq = e.seq, hash = encode(e.hash, 'hex'), last_id = e.id
       from event e where e.workspace_id = h.workspace_id and e.seq = ${toSeq}
        and h.workspace_id = '${id}'`,
  )
}

export function treeRoot(leaves: readonly Buffer[]): string {
  return rootOf(extendFrontier({ size: 0, frontier: [] }, leaves)).toString('base64')
}

/** Checks a signed note with a verifier key, without the code that signs. Returns its size and root. */
export function openNote(
  note: string,
  vkey: string,
): { origin: string; size: number; root: string } {
  // The base64 at the end can contain a plus too.
  const [name = '', keyId = '', ...rest] = vkey.split('+')
  const material = rest.join('+')
  const split = note.lastIndexOf('\n\n')
  const body = note.slice(0, split + 1)
  const line = note
    .slice(split + 2)
    .split('\n')
    .map((text) => text.split(' '))
    .map(([, signer, text = '']) => ({ signer, bytes: Buffer.from(text, 'base64') }))
    .find(({ signer, bytes }) => signer === name && bytes.toString('hex', 0, 4) === keyId)
  assert(line, `no signature of ${vkey} in ${note}`)
  const der = Buffer.from('302a300506032b6570032100', 'hex')
  const key = createPublicKey({
    key: Buffer.concat([der, Buffer.from(material, 'base64').subarray(1)]),
    format: 'der',
    type: 'spki',
  })
  assert(verify(null, Buffer.from(body), key, line.bytes.subarray(4)), 'the signature is valid')
  const [origin = '', size = '', root = ''] = body.split('\n')
  assert.equal(body, `${origin}\n${size}\n${root}\n`)
  assert.equal(origin, name)
  return { origin, size: Number(size), root }
}
