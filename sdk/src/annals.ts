import { type AnnalsOptions, type Connection, createConnection } from './client/connection.ts'
import { Recorder, type RecorderOptions } from './recorder/recorder.ts'
import { Events } from './resource/events.ts'
import { Exports } from './resource/exports.ts'
import { Keys } from './resource/keys.ts'
import { Proofs } from './resource/proofs.ts'
import { Webhooks } from './resource/webhooks.ts'
import { Workspaces } from './resource/workspaces.ts'

const connections = new WeakMap<Annals, Connection>()

/**
 * A client of one Annals service with one key. It holds no connection open, so create it once and keep it.
 *
 * ```ts
 * const annals = new Annals({ apiKey, baseUrl: 'https://annals.example' })
 * await annals.events.create({ category: 'auth', action: 'user.login', actor: { id: 'u-17' } })
 * ```
 */
export class Annals {
  readonly events: Events
  readonly webhooks: Webhooks
  readonly exports: Exports
  readonly proofs: Proofs
  readonly workspaces: Workspaces
  readonly keys: Keys

  /** Throws a TypeError if `apiKey` or `baseUrl` is invalid. */
  constructor(options: AnnalsOptions) {
    const connection = createConnection(options)
    connections.set(this, connection)
    this.events = new Events(connection)
    this.webhooks = new Webhooks(connection)
    this.exports = new Exports(connection)
    this.proofs = new Proofs(connection)
    this.workspaces = new Workspaces(connection)
    this.keys = new Keys(connection)
  }

  /** Records events without waiting for the service. Create one per process, and close it. */
  recorder(options?: RecorderOptions): Recorder {
    return new Recorder(connectionOf(this), options)
  }
}

/** For parts of the package that send requests themselves. Not exported, because it contains the key. */
export function connectionOf(annals: Annals): Connection {
  const connection = connections.get(annals)
  if (connection) return connection
  throw new TypeError('This is not a client of this copy of @annals/sdk.')
}
