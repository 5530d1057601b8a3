import { storageTimeout } from '../../ledger/segment/archive-refusal.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import { FairSemaphore, QueueFullError } from '../../platform/scheduling/fair-semaphore.ts'
import { startDeadline, withDeadline } from '../../platform/time/deadline.ts'
import type { TreeSigner } from './signer.ts'

/** How long a request waits. An ordinary bucket takes a fraction of a second. */
const WAIT_MS_MAX = 2_000
/** Ends signing if the storage hangs, so that other chains can be signed. */
const SIGN_MS_MAX = 5_000

const LIMITS = {
  permitsMax: 4,
  waitingMax: 200,
  waitingPerCompanyMax: 1,
  waitMsMax: WAIT_MS_MAX,
}

/** Signs empty chains when their checkpoint is first requested. Requests for the same chain share one signature. */
export class FirstCheckpoints {
  readonly #signer: Pick<TreeSigner, 'sign'>
  readonly #waitMs: number
  readonly #semaphore = new FairSemaphore(LIMITS)
  readonly #signing = new Map<WorkspaceId, Promise<void>>()

  constructor(signer: Pick<TreeSigner, 'sign'>, timeoutFactor = 1) {
    this.#signer = signer
    this.#waitMs = WAIT_MS_MAX * timeoutFactor
  }

  /**
   * Returns when the chain is signed, or after two seconds. In that case signing continues, so that a later
   * request finds the checkpoint.
   */
  async sign(workspaceId: WorkspaceId): Promise<void> {
    const late = new QueueFullError('the storage of the archive is slow')
    const signing = this.#signing.get(workspaceId) ?? this.#start(workspaceId)
    try {
      await withDeadline(signing, { timeoutMs: this.#waitMs, late: () => late })
    } catch (error) {
      if (!(error instanceof QueueFullError)) throw error
    }
  }

  #start(workspaceId: WorkspaceId): Promise<void> {
    const signing = this.#sign(workspaceId).finally(() => this.#signing.delete(workspaceId))
    // If no request waits for it anymore, the next request reports the problem.
    signing.catch(() => {})
    this.#signing.set(workspaceId, signing)
    return signing
  }

  async #sign(workspaceId: WorkspaceId): Promise<void> {
    using _permit = await this.#semaphore.take(workspaceId)
    const giveUp = new AbortController()
    const late = () => giveUp.abort(storageTimeout(SIGN_MS_MAX))
    using _deadline = startDeadline({ timeoutMs: SIGN_MS_MAX }, late)
    await this.#signer.sign(workspaceId, giveUp.signal)
  }
}
