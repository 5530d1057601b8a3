import assert from 'node:assert/strict'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommandInHost } from '../app/command-host.ts'
import { commandEnv } from '../app/command-env.ts'
import { startTestApp } from '../app/start-app.ts'
import { createSigner, sendEvents, signWhole } from '../proof/proof.ts'
import { backUp } from './backup.ts'

/** A service whose backup contains archived, signed and hot events, and the secret key. */
export async function startBackedUpApp() {
  await using stack = new AsyncDisposableStack()
  const annals = stack.use(await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } }))
  const { workspace, workspaceKey } = await annals.createCompany()
  await sendEvents(annals, workspaceKey, 20)
  await signWhole(createSigner(annals), workspace.id)
  const before = new Date(Date.now() + 1_000).toISOString()
  const archived = await runCommandInHost(['archive', '--before', before], commandEnv(annals))
  assert.equal(archived.code, 0, archived.stderr)
  await sendEvents(annals, workspaceKey, 20)
  const kept = stack.move()
  /** A temporary folder. */
  const newFolder = async (): Promise<string> =>
    kept.use(await mkdtempDisposable(join(tmpdir(), 'annals-backup-'))).path
  const folder = await newFolder()
  await backUp(annals, folder, '--with-secret-key')
  const dispose = () => kept.disposeAsync()
  return { annals, workspace, workspaceKey, folder, newFolder, [Symbol.asyncDispose]: dispose }
}
