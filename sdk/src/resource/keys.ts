import type { CallOptions, Connection } from '../client/connection.ts'
import { sendJson } from '../client/send.ts'
import type { KeyStatus } from './types.ts'

/** The key of this client. Keys are created and rotated in the dashboard. */
export class Keys {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** The scope, the permissions and the health of the key. */
  status(options?: CallOptions): Promise<KeyStatus> {
    return sendJson(this.#connection, { method: 'GET', path: '/v1/keys/status' }, options)
  }
}
