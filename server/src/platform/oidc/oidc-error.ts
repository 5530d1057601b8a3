/**
 * Why a sign-in with the identity provider failed. `denied`: the person or the provider refused. `unavailable`:
 * no response in time. `invalid`: a response that must not be trusted.
 */
export type OidcFailure = 'denied' | 'unavailable' | 'invalid'

/** A failure at the identity provider. The message is for the log. */
export class OidcError extends Error {
  override name = 'OidcError'
  readonly failure: OidcFailure

  constructor(failure: OidcFailure, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.failure = failure
  }
}
