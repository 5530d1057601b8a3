import assert from 'node:assert/strict'
import type { Pool, PoolClient, Submittable } from 'pg'
import { type Database, isOutage, type Queryable } from '../../platform/pg/database.ts'
import { queryableOn } from '../../platform/pg/guarded-pool.ts'
import { PROBE_EVERY_MS, PROBE_MS_MAX, probeDatabase } from '../../platform/pg/probe-database.ts'
import type { Server } from '../../platform/pg/server-address.ts'
import { ServerClient } from '../../platform/pg/servers.ts'
import { startDeadline, whileAlive, withDeadline } from '../../platform/time/deadline.ts'
import type { ChainSource } from './chain-reads.ts'

/** A new connection takes a few round trips. A replica that needs longer is not worth waiting for. */
const CONNECT_MS_MAX = 400
/** For the first statement of a snapshot, which reads one row. */
const START_MS_MAX = 400

/** For each statement. A search that takes longer has its own limit on the primary. */
export const REPLICA_STATEMENT_MS_MAX = 5_000

/**
 * The replica works, but can't serve this read: all connections are in use (`busy`), or a page has more bytes than
 * expected (`large`), which can only be stopped by closing the connection.
 */
export class NotServedError extends Error {
  override name = 'NotServedError'
  readonly reason: 'busy' | 'large'

  constructor(reason: 'busy' | 'large') {
    super(`the replica can't serve this read: ${reason}`)
    this.reason = reason
  }
}

/** One per server at a time, however many reads wait for it. */
const probes = new WeakMap<Server, Promise<boolean>>()

type PooledClient = PoolClient & ServerClient

/**
 * One connection to the replica, for one read. It gives up a replica that doesn't respond within about a second,
 * and cuts the connection then: data that arrived later would be written to a buffer that the next read uses.
 */
export class ReplicaSession implements Disposable {
  readonly #client: PooledClient
  readonly #db: Queryable
  readonly #timeoutFactor: number
  #isBroken = false

  private constructor(client: PooledClient, timeoutFactor: number) {
    this.#client = client
    this.#db = queryableOn(client)
    this.#timeoutFactor = timeoutFactor
  }

  static async open({ pool, timeoutFactor }: Database): Promise<ReplicaSession> {
    // Waiting for a connection would take longer than a read on the primary.
    if (pool.idleCount === 0 && pool.totalCount >= pool.options.max) {
      throw new NotServedError('busy')
    }
    return new ReplicaSession(await connect(pool, CONNECT_MS_MAX * timeoutFactor), timeoutFactor)
  }

  /**
   * Runs `start` and then `read`, unless `start` returns another value than null. All their statements see one
   * snapshot.
   */
  async inSnapshot<S, T>(
    start: (db: Queryable) => Promise<S | null>,
    read: (source: ChainSource) => Promise<T>,
  ): Promise<{ refused: S } | { result: T }> {
    using deadline = startDeadline({ timeoutMs: START_MS_MAX * this.#timeoutFactor }, () =>
      this.#cut(),
    )
    const snapshot = this.#db
      .transaction()
      .setIsolationLevel('repeatable read')
      .setAccessMode('read only')
    const work = snapshot.execute(async (db) => {
      const refused = await start(db)
      deadline[Symbol.dispose]()
      if (refused !== null) return { refused }
      return { result: await read({ pool: this.#lendClient(), db }) }
    })
    try {
      return await whileAlive(work, {
        everyMs: PROBE_EVERY_MS,
        isAlive: () => this.#isAlive(),
        dead: () => new Error('Connection terminated: the replica does not respond'),
      })
    } catch (error) {
      if (isOutage(error)) this.#cut()
      throw error
    }
  }

  #isAlive(): Promise<boolean> {
    const { server } = this.#client
    const running = probes.get(server)
    if (running) return running
    const timeoutMs = PROBE_MS_MAX * this.#timeoutFactor
    const probe = probeDatabase(server, undefined, timeoutMs).finally(() => probes.delete(server))
    probes.set(server, probe)
    return probe
  }

  /** A pool with this connection only, which stays ours. */
  #lendClient(): ChainSource['pool'] {
    const lent = {
      query: (run: Submittable) => this.#client.query(run),
      release: (shouldDestroy?: boolean) => {
        if (shouldDestroy === true) this.#cut()
      },
    }
    return {
      connect: async () => {
        if (this.#isBroken) throw new NotServedError('large')
        return lent
      },
    }
  }

  #cut(): void {
    this.#isBroken = true
    this.#client.cut('the read on the replica was given up')
  }

  [Symbol.dispose](): void {
    this.#client.release(this.#isBroken)
  }
}

async function connect(pool: Pool, timeoutMs: number): Promise<PooledClient> {
  const connecting = pool.connect()
  try {
    const late = () => new Error('Connection terminated: the replica does not respond')
    const client = await withDeadline(connecting, { timeoutMs, late })
    assert(client instanceof ServerClient)
    return client
  } catch (error) {
    // If it connects later, return it to the pool.
    connecting.then(
      (client) => client.release(),
      () => {},
    )
    throw error
  }
}
