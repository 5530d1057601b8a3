import type { CallOptions, Connection } from '../client/connection.ts'
import { sendJson, sendText } from '../client/send.ts'
import type { Checkpoint, ConsistencyProof, EventProof, ServiceKeys } from './types.ts'

/** The evidence for an auditor. `bin/annals-verify` checks it offline. */
export class Proofs {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Proves that an event is in the signed ledger. New events get a checkpoint within seconds. */
  event(eventId: string, options?: CallOptions): Promise<EventProof> {
    const path = `/v1/events/${encodeURIComponent(eventId)}/proof`
    return sendJson(this.#connection, { method: 'GET', path }, options)
  }

  /** The newest signed checkpoint of a workspace. Its `note` is what witnesses and verifiers read. */
  checkpoint(workspaceId: string, options?: CallOptions): Promise<Checkpoint> {
    const path = `${pathOf(workspaceId)}/checkpoint`
    return sendJson(this.#connection, { method: 'GET', path }, options)
  }

  /** The newest signed checkpoint as text, to keep somewhere that the operator can't change. */
  checkpointText(workspaceId: string, options?: CallOptions): Promise<string> {
    const path = `${pathOf(workspaceId)}/checkpoint`
    return sendText(this.#connection, { method: 'GET', path, accept: 'text/plain' }, options)
  }

  /** Proves that the ledger of `to` events contains the ledger of `from` events, unchanged. */
  consistency(
    workspaceId: string,
    sizes: { from: number; to: number },
    options?: CallOptions,
  ): Promise<ConsistencyProof> {
    const path = `${pathOf(workspaceId)}/consistency`
    return sendJson(this.#connection, { method: 'GET', path, query: sizes }, options)
  }

  /** The keys that the service publishes. Compare them with those you got from the operator. */
  serviceKeys(options?: CallOptions): Promise<ServiceKeys> {
    return sendJson(this.#connection, { method: 'GET', path: '/.well-known/annals.json' }, options)
  }
}

function pathOf(workspaceId: string): string {
  return `/v1/workspaces/${encodeURIComponent(workspaceId)}`
}
