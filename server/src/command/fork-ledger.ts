import { hash } from 'node:crypto'
import type { Config } from '../config.ts'
import { archiveUrlOf } from '../archive-url-of.ts'
import { openArchive } from '../open-archive.ts'
import { OperatorError } from '../errors.ts'
import { resetTree } from '../ledger/tree/checkpoint-store.ts'
import { rootOf } from '../ledger/tree/merkle.ts'
import { readArchiveId } from '../outlet/archive/archive-identity-store.ts'
import { ChainRefusedError } from '../outlet/proof/build-tree.ts'
import { type ForkKey, hasForkEntry } from '../outlet/proof/fork-entry-store.ts'
import { listSigningKeys, loadSigningKeys } from '../outlet/proof/key-list/key-list.ts'
import { findFork, keepReplaced, type LedgerFork, rootText } from '../outlet/proof/ledger-fork.ts'
import {
  acceptLost,
  type LostWorkspace,
  readLost,
  signedText,
} from '../outlet/proof/lost-workspace.ts'
import { TreeSigner, type TreeSignerOptions } from '../outlet/proof/signer.ts'
import { type SignedTree, stateKeyOf, writeState } from '../outlet/proof/signer-state.ts'
import { signCheckpoint, vkeyOf } from '../outlet/proof/signing-key.ts'
import { checkSecretKey } from '../outlet/webhook/secret/check-secret-key.ts'
import { parseId, type CompanyId, type WorkspaceId } from '../platform/id.ts'
import { createLogger } from '../platform/logger.ts'
import { StorageError } from '../platform/object-store/object-store.ts'
import { Database } from '../platform/pg/database.ts'
import { systemClock as clock } from '../platform/time/clock.ts'
import { changeAs } from '../tenancy/caller.ts'
import { listAllWorkspaces } from '../tenancy/workspace/workspace-store.ts'
import { openCommandDataSource } from './open-command-data-source.ts'
import { operatorCaller } from './operator.ts'
import { printLines } from './output/print.ts'

export type ForkOptions = { workspace: string; acceptSize?: string; acceptLost?: boolean }
type Place = { workspaceId: WorkspaceId; companyId: CompanyId }

/**
 * `annals ledger-fork`: reports how a chain differs from what was signed. With `--accept-size`, the signer continues
 * from these events. This leaves a trace: the old state stays in the archive, and the company gets an audit entry.
 * With `--accept-lost`, `annals verify` no longer fails because of a workspace that the database doesn't have.
 */
export async function forkLedger(config: Config, options: ForkOptions): Promise<void> {
  const acceptSize = parseSize(options.acceptSize)
  if (archiveUrlOf(config) === null) {
    throw new OperatorError(
      'There is nothing to accept: without an archive, nothing is signed. Set ANNALS_ARCHIVE_URL.',
    )
  }
  await using stack = new AsyncDisposableStack()
  const signing = await openSigning(stack, config)
  const { db } = signing.database
  const wanted = parseId<'workspace'>(options.workspace)
  const found = (await listAllWorkspaces(db)).find(({ id }) => id === wanted)
  try {
    const lost = found || !wanted ? null : await readLost(signing.archive, wanted)
    if (lost) return await forkLost(signing, lost, options)
    if (!found) throw new OperatorError(`There is no workspace with the id ${options.workspace}.`)
    if (options.acceptLost) {
      throw new OperatorError(
        `Nothing was changed: the database has workspace ${found.id}. Run the command without --accept-lost.`,
      )
    }
    await forkChain(signing, { workspaceId: found.id, companyId: found.companyId }, acceptSize)
  } catch (error) {
    throw toForkError(error, options)
  }
}

/** Reports or accepts a chain. */
async function forkChain(
  signing: TreeSignerOptions,
  place: Place,
  acceptSize: number | null,
): Promise<void> {
  const { workspaceId } = place
  const { database, archive, keySource, logger } = signing
  const listed = await listSigningKeys({ db: database.db, archive, keySource, logger })
  const publicKeys = listed.map(({ publicKey }) => Buffer.from(publicKey, 'base64'))
  const fork = await findFork({ ...signing, publicKeys }, workspaceId, acceptSize)
  if (fork === null) {
    throw new OperatorError(
      `Nothing was changed: workspace ${workspaceId} contains everything that was signed, so the signer continues without this command.`,
    )
  }
  printLines(...describeFork(place, fork))
  if (acceptSize === null) {
    printLines(
      `Nothing was changed. To accept this, run: annals ledger-fork --workspace ${workspaceId} --accept-size ${fork.headSize}`,
    )
    process.exitCode = 1
    return
  }
  if (fork.chain.size !== acceptSize || (acceptSize === 0 && fork.headSize > 0)) {
    throw new OperatorError(
      `Nothing was changed: --accept-size must be from 1 to ${fork.headSize}, the number of stored events.`,
    )
  }
  await accept(signing, place, fork)
}

/** Reports or accepts the loss of a whole workspace. There is no company left that could get an audit entry. */
async function forkLost(
  { archive }: TreeSignerOptions,
  lost: LostWorkspace,
  { acceptSize, acceptLost: isAccepting = false }: ForkOptions,
): Promise<void> {
  const { workspaceId, signed } = lost
  printLines(
    `Workspace ${workspaceId} is lost: ${signedText(lost)}, but the workspace is missing from the database.`,
  )
  if (signed !== null) printLines(signedLine(signed))
  if (acceptSize !== undefined) {
    throw new OperatorError(
      'Nothing was changed: without the workspace, there are no events to accept. Run the command without --accept-size.',
    )
  }
  if (lost.isAccepted) {
    printLines('Nothing was changed, because the loss is already accepted.')
    return
  }
  if (!isAccepting) {
    printLines(
      `Nothing was changed. If a newer backup has the workspace, restore it. To accept the loss, run: annals ledger-fork --workspace ${workspaceId} --accept-lost`,
    )
    process.exitCode = 1
    return
  }
  const keptObject = await acceptLost(archive, lost)
  printLines(
    `Accepted. What was signed stays in the archive, in ${stateKeyOf(workspaceId)} and ${keptObject}. Tell the auditors.`,
  )
}

function parseSize(text: string | undefined): number | null {
  if (text === undefined) return null
  if (/^(0|[1-9]\d{0,14})$/.test(text)) return Number(text)
  throw new OperatorError(`--accept-size must be a number of events. Got "${text}".`)
}

async function openSigning(
  stack: AsyncDisposableStack,
  config: Config,
): Promise<TreeSignerOptions> {
  const logger = createLogger('warn', 'stderr')
  const dataSource = stack.use(await openCommandDataSource(config, { logger, mayCreate: false }))
  const { connection, secretKey } = dataSource
  const database = stack.use(
    new Database({ connection, role: 'annals_serving', connectionsMax: 2, logger }),
  )
  const { db } = database
  await checkSecretKey({ db, secretKey, clock })
  const archive = stack.use(openArchive(config, { readArchiveId: () => readArchiveId(db) }))
  const configured = config.signingKey ?? config.signingKeyFile
  return {
    database,
    archive,
    keySource: { secretKey, configured, previous: config.signingKeyPrevious },
    originHost: config.publicUrl === null ? 'annals.local' : new URL(config.publicUrl).hostname,
    clock,
    logger,
  }
}

/** Reports what was signed, what is stored, and which events are lost. */
function describeFork({ workspaceId }: Place, fork: LedgerFork): string[] {
  const { signed, chain, headSize, unchangedSize, publishedSize } = fork
  const lines = [`Workspace ${workspaceId}: ${fork.reason}.`]
  if (signed === null) {
    lines.push(
      `The database says that ${publishedSize ?? 'an unknown number of'} events were signed. This can't be checked.`,
    )
  } else {
    const { size } = signed
    lines.push(
      signedLine(signed),
      `Certainly unchanged: the first ${unchangedSize} events.`,
      `Lost or replaced: up to ${size - unchangedSize} events, from ${unchangedSize + 1} to ${size}.`,
    )
  }
  lines.push(
    `Stored now: ${headSize} events. To be accepted: ${chain.size}, root ${rootText(chain)}, last hash ${chain.lastHash}.`,
    'If you accept this, checkpoints that others kept can contradict the ledger, and witnesses that saw them refuse it. Tell the auditors.',
  )
  return lines
}

function signedLine({ size, signedAt, lastHash, ...tree }: SignedTree): string {
  return `Signed: ${size} events at ${signedAt.toISOString()}, root ${rootText(tree)}, last hash ${lastHash}.`
}

/**
 * In this order, so that a crash leaves an audit entry without a change, but never a change without an entry. If the
 * command is then repeated, it finds that entry and adds no second one.
 */
async function accept(signing: TreeSignerOptions, place: Place, fork: LedgerFork): Promise<void> {
  const { database, archive } = signing
  const { workspaceId, companyId } = place
  const { stored, chain } = fork
  const tree = await signTree(signing, workspaceId, fork)
  const key: ForkKey | null = stored && {
    workspaceId,
    replacedSha256: hash('sha256', stored.bytes, 'hex'),
    acceptedSize: chain.size,
    acceptedRoot: rootText(chain),
  }
  const isRecorded = key !== null && (await hasForkEntry(database.db, companyId, key))
  if (!isRecorded) await recordFork(signing, place, fork, key)
  const tag = await archive.replace(stateKeyOf(workspaceId), {
    bytes: writeState(tree),
    tag: stored?.tag ?? null,
  })
  if (tag === null) {
    throw new OperatorError(
      `The object ${stateKeyOf(workspaceId)} was changed by another process, so nothing was accepted. Run the command again.`,
    )
  }
  printLines(`Accepted ${chain.size} events.`)
  await publish(signing, workspaceId)
}

/** Keeps what was signed, and writes the audit entry. */
async function recordFork(
  { database, archive }: TreeSignerOptions,
  { workspaceId, companyId }: Place,
  fork: LedgerFork,
  key: ForkKey | null,
): Promise<void> {
  const { stored, chain, unchangedSize } = fork
  const keptObject =
    stored && (await keepReplaced(archive, { workspaceId, bytes: stored.bytes, nowMs: clock() }))
  await changeAs(operatorCaller(companyId), database.db, async (trx, record) => {
    await resetTree(trx, { workspaceId, unchangedSize })
    const metadata = {
      workspaceId,
      reason: fork.reason,
      signedSize: fork.signed?.size ?? fork.publishedSize,
      signedRoot: fork.signed && rootText(fork.signed),
      acceptedSize: chain.size,
      acceptedRoot: rootText(chain),
      unchangedSize,
      keptObject,
      replacedSha256: key?.replacedSha256 ?? null,
    }
    const resource = { type: 'workspace', id: workspaceId }
    record({ action: 'LEDGER_FORK_ACCEPTED', resource, metadata })
  })
  if (keptObject === null) return
  printLines(`The old signed state is in the archive, in ${keptObject}.`)
}

async function signTree(
  { database: { db }, archive, keySource, originHost, logger }: TreeSignerOptions,
  workspaceId: WorkspaceId,
  { chain, origin: known }: LedgerFork,
): Promise<SignedTree> {
  const keys = await loadSigningKeys({ db, archive, keySource, logger }, clock)
  const [current] = keys
  if (!current) throw new Error('a signer has a key')
  // The ledger keeps its name. With a new one, the loss would not be visible.
  const origin = known ?? `${originHost}/${workspaceId}`
  const root = rootOf(chain.frontier)
  const note = signCheckpoint({ origin, size: chain.size, root }, keys)
  const vkey = vkeyOf(origin, current.publicKey)
  return { ...chain, origin, root, note, vkey, signedAt: new Date(clock()) }
}

/** Publishes at once. A running node would do this within a minute. */
async function publish(signing: TreeSignerOptions, workspaceId: WorkspaceId): Promise<void> {
  const signer = new TreeSigner(signing)
  for (;;) {
    const outcome = await signer.sign(workspaceId)
    if (outcome === 'more') continue
    if (outcome !== 'refused') return
    throw new OperatorError('The signer still refuses the workspace. Run the command again.')
  }
}

function toForkError(error: unknown, { workspace }: ForkOptions): unknown {
  if (error instanceof ChainRefusedError) {
    return new OperatorError(
      `Nothing was changed: the events of workspace ${workspace} don't form an intact chain (${error.message}), so they can't be accepted. Run annals verify.`,
      { cause: error },
    )
  }
  return error instanceof StorageError ? new OperatorError(error.message, { cause: error }) : error
}
