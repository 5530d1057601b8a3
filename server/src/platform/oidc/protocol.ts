import * as oauth from 'oauth4webapi'
import { type BoundedRequest, createBoundedFetch } from '../outbound/bounded-fetch.ts'
import { foldCase } from '../fold-case.ts'
import type { Secret } from '../secret/secret.ts'
import { OidcError } from './oidc-error.ts'

/** Metadata, keys and tokens of large providers have less than 50 kB. */
const send = createBoundedFetch({ bodyBytesMax: 256 * 1_024 })

export type OidcSettings = {
  issuer: string
  clientId: string
  clientSecret: Secret<string>
  scopes: string
  groupsClaim: string
  redirectUri: string
}

/** What the provider says about itself. */
export type ProviderMetadata = oauth.AuthorizationServer

/** The provider's keys. The library fills it in, and replaces keys that are older than five minutes. */
export type ProviderKeys = oauth.JWKSCacheInput

/** What binds the response from the provider to the browser that started the sign-in. */
export type SignInSecrets = { state: string; nonce: string; verifier: string }

/** A person, as the provider describes them. */
export type ProviderPerson = {
  subject: string
  email: string | null
  isEmailVerified: boolean
  groups: readonly string[]
}

/** Clocks can differ by this much. */
const CLOCK_TOLERANCE_SECONDS = 30
const SUBJECT_LENGTH_MAX = 255
const EMAIL_LENGTH_MAX = 254
const GROUPS_MAX = 1_000
const GROUP_LENGTH_MAX = 200
const ERROR_LENGTH_MAX = 100

export function newSignInSecrets(): SignInSecrets {
  return {
    state: oauth.generateRandomState(),
    nonce: oauth.generateRandomNonce(),
    verifier: oauth.generateRandomCodeVerifier(),
  }
}

/** Reads the provider's metadata, and checks that it is complete and about this issuer. */
export async function discover(
  settings: OidcSettings,
  signal: AbortSignal,
): Promise<ProviderMetadata> {
  return await withOidcErrors(async () => {
    const issuer = new URL(settings.issuer)
    const response = await oauth.discoveryRequest(issuer, {
      algorithm: 'oidc',
      ...requestOptions(settings, signal),
    })
    const metadata = await oauth.processDiscoveryResponse(issuer, response)
    const { authorization_endpoint: url = '', token_endpoint, jwks_uri } = metadata
    const isUsable = URL.canParse(url) && token_endpoint !== undefined && jwks_uri !== undefined
    if (!isUsable || !(new URL(url).protocol === 'https:' || isInsecure(settings))) {
      throw new OidcError('invalid', 'the metadata of the provider is not complete')
    }
    return metadata
  })
}

/** Where the browser goes to sign in. */
export async function authorizationUrl(
  settings: OidcSettings,
  metadata: ProviderMetadata,
  { state, nonce, verifier }: SignInSecrets,
): Promise<string> {
  const url = new URL(metadata.authorization_endpoint ?? '')
  const parameters = {
    response_type: 'code',
    client_id: settings.clientId,
    redirect_uri: settings.redirectUri,
    scope: settings.scopes,
    state,
    nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return url.href
}

export type Exchange = {
  settings: OidcSettings
  metadata: ProviderMetadata
  /** The query of the callback. */
  parameters: URLSearchParams
  secrets: SignInSecrets
  keys: ProviderKeys
  /** Called if no known key matches. Returns an empty cache, or null if the keys were read recently. */
  renewKeys: () => ProviderKeys | null
  signal: AbortSignal
}

/** Exchanges the code for the person who signed in, and checks everything that the provider says. */
export async function exchangeCode(exchange: Exchange): Promise<ProviderPerson> {
  return await withOidcErrors(async () => {
    const { settings, metadata, secrets, signal } = exchange
    const client = clientOf(settings)
    const options = requestOptions(settings, signal)
    const parameters = oauth.validateAuthResponse(
      metadata,
      client,
      exchange.parameters,
      secrets.state,
    )
    const response = await oauth.authorizationCodeGrantRequest(
      metadata,
      client,
      authenticationOf(settings, metadata),
      parameters,
      settings.redirectUri,
      secrets.verifier,
      options,
    )
    const tokens = await oauth.processAuthorizationCodeResponse(metadata, client, response, {
      expectedNonce: secrets.nonce,
      requireIdToken: true,
    })
    await checkSignature(exchange, response)
    const claims = oauth.getValidatedIdTokenClaims(tokens)
    if (!claims) throw new OidcError('invalid', 'there is no ID token')
    checkAuthorizedParty(settings, claims)
    const names = ['email', 'email_verified', settings.groupsClaim]
    const isComplete = names.every((name) => claims[name] !== undefined)
    if (isComplete || metadata.userinfo_endpoint === undefined) return personOf(settings, claims)
    const info = await oauth.userInfoRequest(metadata, client, tokens.access_token, options)
    const more = await oauth.processUserInfoResponse(metadata, client, claims.sub, info)
    return personOf(settings, mergedClaims(claims, more))
  })
}

type Claims = Readonly<Record<string, unknown>>

/** The library checks `azp` only if the token is for several clients. */
function checkAuthorizedParty({ clientId }: OidcSettings, { azp }: Claims): void {
  if (azp === undefined || azp === clientId) return
  throw new OidcError('invalid', 'the ID token was issued to another client')
}

/**
 * The ID token is signed, so its claims win. An address and whether it is verified come from the same
 * response. Otherwise, the verification could be about another address.
 */
function mergedClaims(claims: Claims & { sub: string }, more: Claims) {
  const { email, email_verified } = claims.email === undefined ? more : claims
  return { ...more, ...claims, email, email_verified }
}

/** By default, the library doesn't check the signature of a token that comes directly from the provider. */
async function checkSignature(exchange: Exchange, response: Response): Promise<void> {
  const { settings, metadata, signal, keys, renewKeys } = exchange
  const check = async (cache: ProviderKeys): Promise<void> => {
    const options = { ...requestOptions(settings, signal), [oauth.jwksCache]: cache }
    // The library has a cache of its own for each metadata object. A copy has none.
    await oauth.validateApplicationLevelSignature({ ...metadata }, response, options)
  }
  try {
    await check(keys)
  } catch (error) {
    const isKeyUnknown =
      error instanceof oauth.OperationProcessingError && error.code === oauth.KEY_SELECTION
    const fresh = isKeyUnknown ? renewKeys() : null
    if (!fresh) throw error
    await check(fresh)
  }
}

function personOf({ groupsClaim }: OidcSettings, claims: Claims & { sub: string }): ProviderPerson {
  const { sub: subject, email, email_verified: verified } = claims
  if (!isStorable(subject, SUBJECT_LENGTH_MAX)) {
    throw new OidcError('invalid', "the subject can't be stored")
  }
  return {
    subject,
    email: typeof email === 'string' && isUsable(email) ? foldCase(email) : null,
    isEmailVerified: verified === true,
    groups: groupsIn(claims[groupsClaim]),
  }
}

/**
 * Some capital letters have a lowercase form in ASCII: the Kelvin sign's is `k`, so another mailbox would become
 * that of an account. An address with capitals other than A to Z is treated like none.
 */
function isUsable(email: string): boolean {
  return isStorable(email, EMAIL_LENGTH_MAX) && email.toLowerCase() === foldCase(email)
}

function groupsIn(claim: unknown): string[] {
  const listed: unknown[] = Array.isArray(claim) ? claim : [claim]
  return listed
    .slice(0, GROUPS_MAX)
    .filter((group) => typeof group === 'string')
    .filter((group) => isStorable(group, GROUP_LENGTH_MAX))
}

/** PostgreSQL refuses NUL characters and unpaired surrogates. */
function isStorable(text: string, lengthMax: number): boolean {
  return text !== '' && text.length <= lengthMax && !text.includes('\0') && text.isWellFormed()
}

function clientOf({ clientId }: OidcSettings): oauth.Client {
  return { client_id: clientId, [oauth.clockTolerance]: CLOCK_TOLERANCE_SECONDS }
}

function authenticationOf(
  { clientSecret }: OidcSettings,
  { token_endpoint_auth_methods_supported: methods }: ProviderMetadata,
): oauth.ClientAuth {
  const secret = clientSecret.reveal()
  const hasBasic = methods === undefined || methods.includes('client_secret_basic')
  return hasBasic ? oauth.ClientSecretBasic(secret) : oauth.ClientSecretPost(secret)
}

function requestOptions(settings: OidcSettings, signal: AbortSignal) {
  return {
    [oauth.customFetch]: async (url: string, request: BoundedRequest) =>
      await send(url, request, signal),
    [oauth.allowInsecureRequests]: isInsecure(settings),
  }
}

/** The configuration allows this only for a provider on the same machine. */
function isInsecure({ issuer }: OidcSettings): boolean {
  return issuer.startsWith('http:')
}

/** Turns the errors of the library and of the network into ours. */
async function withOidcErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof OidcError) throw error
    throw toOidcError(error)
  }
}

function toOidcError(cause: unknown): OidcError {
  if (cause instanceof oauth.AuthorizationResponseError) {
    return new OidcError('denied', answeredWith(cause), { cause })
  }
  if (cause instanceof oauth.ResponseBodyError) {
    return new OidcError('invalid', answeredWith(cause), { cause })
  }
  const status = statusIn(cause)
  if (status !== null && status >= 500) {
    return new OidcError('unavailable', `the provider answered with status ${status}`, { cause })
  }
  const isOurs = cause instanceof oauth.OperationProcessingError
  if (isOurs || cause instanceof oauth.UnsupportedOperationError) {
    return new OidcError('invalid', cause.message, { cause })
  }
  return new OidcError('unavailable', cause instanceof Error ? cause.message : 'no answer', {
    cause,
  })
}

/** For the log. The code can be as long as the response. */
function answeredWith({ error }: { error: string }): string {
  return `the provider answered ${error.slice(0, ERROR_LENGTH_MAX)}`
}

function statusIn(error: unknown): number | null {
  const cause = error instanceof Error ? error.cause : null
  return cause instanceof Response ? cause.status : null
}
