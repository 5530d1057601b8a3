/** The part of the package that the tests use. It has no types of its own. */
declare module 'oidc-provider' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

  type Interaction = { uid: string; params: { client_id: string } }
  type Grant = { addOIDCScope: (scope: string) => void; save: () => Promise<string> }

  export class Provider {
    constructor(issuer: string, configuration: object)
    /** Trusts the headers of a proxy. */
    proxy: boolean
    Grant: new (grant: { accountId: string; clientId: string }) => Grant
    callback(): RequestListener
    on(event: string, listener: (...details: unknown[]) => void): this
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionFinished(
      request: IncomingMessage,
      response: ServerResponse,
      result: object,
    ): Promise<void>
  }
}
