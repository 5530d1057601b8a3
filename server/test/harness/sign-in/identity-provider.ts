import assert from 'node:assert/strict'
import { generateKeyPairSync, type JsonWebKey, type KeyObject, randomUUID, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import { Provider } from 'oidc-provider'

/** What the identity provider says about a person. */
export type Person = { email?: string; email_verified?: boolean; groups?: readonly string[] }

export type TokenClaims = Record<string, unknown> & { iss: string; aud: string; nonce: string }
export type SigningKey = { kid: string; privateKey: KeyObject; publicJwk: JsonWebKey }

/** Replaces the response to requests for a path. Null: the real response. */
export type Fault = (request: {
  path: string
  body: string
}) => Response | null | Promise<Response | null>

export type TestProvider = AsyncDisposable & {
  issuer: string
  clientId: string
  /** The settings of a service that uses it. */
  env: Record<string, string>
  people: Map<string, Person>
  /** Requests per path. */
  counts: Map<string, number>
  setFault: (fault: Fault | null) => void
  /** Changes the claims of ID tokens, and signs them with `signingKey` unless another key is given. */
  forge: (change: (claims: TokenClaims) => object, options?: ForgeOptions) => void
  signingKey: SigningKey
}

type ForgeOptions = {
  key?: SigningKey
  header?: object
  signature?: string
  /** The keys that the provider publishes from now on. */
  published?: readonly SigningKey[]
}

const CLIENT_ID = 'annals'
const CLIENT_SECRET = 'a secret of the client'
/** The service's public URL in tests. */
export const TEST_PUBLIC_URL = 'http://annals.test'

/**
 * A real identity provider on this machine, behind a proxy that can replace its responses. Its page has a button
 * for every person.
 */
export async function startIdentityProvider({
  publicUrl = TEST_PUBLIC_URL,
}: { publicUrl?: string } = {}): Promise<TestProvider> {
  await using stack = new AsyncDisposableStack()
  const people = new Map<string, Person>()
  const counts = new Map<string, number>()
  const signingKey = createSigningKey()
  let fault: Fault | null = null
  const handler: { serve: RequestListener } = { serve: (_request, response) => response.end() }
  const inner = stack.use(await listen((request, response) => handler.serve(request, response)))
  const outer = stack.use(
    await listen((request, response) => {
      const path = (request.url ?? '').split('?', 1)[0] ?? ''
      counts.set(path, (counts.get(path) ?? 0) + 1)
      void forward(request, { path, to: inner.url, host: outer.host, fault }).then(
        async (answer) => {
          response.statusCode = answer.status
          response.setHeaders(answer.headers)
          response.end(Buffer.from(await answer.arrayBuffer()))
        },
        () => response.destroy(),
      )
    }),
  )
  const issuer = outer.url
  handler.serve = serveProvider(issuer, { people, signingKey, publicUrl })
  const kept = stack.move()
  return {
    issuer,
    clientId: CLIENT_ID,
    env: {
      ANNALS_OIDC_ISSUER: issuer,
      ANNALS_OIDC_CLIENT_ID: CLIENT_ID,
      ANNALS_OIDC_CLIENT_SECRET: CLIENT_SECRET,
      ANNALS_OIDC_NAME: 'Example ID',
      ANNALS_OIDC_SCOPES: 'openid email groups',
      ANNALS_PUBLIC_URL: publicUrl,
    },
    people,
    counts,
    signingKey,
    setFault: (next) => void (fault = next),
    forge: (change, { key = signingKey, published, ...options } = {}) => {
      fault = async ({ path, body }) => {
        if (path === '/jwks' && published) return Response.json({ keys: published.map(toJwk) })
        if (path !== '/token') return null
        const real = await fetch(`${inner.url}${path}`, tokenRequest(body, outer.host))
        const tokens: { id_token: string } = JSON.parse(await real.text())
        const claims = readClaims(tokens.id_token)
        const id_token = signToken(change(claims), key, options)
        return Response.json({ ...tokens, id_token })
      }
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

function serveProvider(
  issuer: string,
  {
    people,
    signingKey,
    publicUrl,
  }: Pick<TestProvider, 'people' | 'signingKey'> & { publicUrl: string },
): RequestListener {
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        redirect_uris: [`${publicUrl}/dashboard/oidc/callback`],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    jwks: { keys: [{ ...signingKey.privateKey.export({ format: 'jwk' }), kid: signingKey.kid }] },
    claims: { email: ['email', 'email_verified'], groups: ['groups'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    cookies: { keys: [randomUUID()] },
    // Without these, the provider prints a notice for each.
    ttl: { Interaction: 600, Grant: 600, Session: 600, AccessToken: 600, IdToken: 600 },
    findAccount: (_context: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id, ...people.get(id) }),
    }),
  })
  provider.proxy = true
  const serve = provider.callback()
  return (request, response) => {
    if (request.url?.startsWith('/interaction/') !== true) return serve(request, response)
    void choosePerson(provider, people, request, response)
  }
}

/** The page of the provider: a button for every person who can sign in. */
async function choosePerson(
  provider: Provider,
  people: ReadonlyMap<string, Person>,
  ...[request, response]: Parameters<RequestListener>
): Promise<void> {
  if (request.method !== 'POST') {
    const buttons = [...people.keys()].map(
      (id) => `<button name="person" value="${id}">${id}</button>`,
    )
    const page = `<!doctype html><title>Provider</title><form method="post">${buttons.join('')}</form>`
    response.setHeader('content-type', 'text/html')
    response.end(page)
    return
  }
  const accountId = new URLSearchParams(await text(request)).get('person') ?? ''
  const { params } = await provider.interactionDetails(request, response)
  const isDenied = !people.has(accountId)
  const grant = new provider.Grant({ accountId, clientId: params.client_id })
  grant.addOIDCScope('openid email groups')
  const grantId = await grant.save()
  const result = isDenied
    ? { error: 'access_denied' }
    : { login: { accountId }, consent: { grantId } }
  await provider.interactionFinished(request, response, result)
}

async function forward(
  request: IncomingMessage,
  { path, to, host, fault }: { path: string; to: string; host: string; fault: Fault | null },
): Promise<Response> {
  const body = await text(request)
  const replaced = await fault?.({ path, body })
  if (replaced) return replaced
  const { method = 'GET', url = '', headers } = request
  const { cookie, authorization, 'content-type': type } = headers
  const sent = { cookie, authorization, 'content-type': type }
  const given = Object.entries(sent).filter(([, value]) => value !== undefined)
  const answer = await fetch(`${to}${url}`, {
    method,
    headers: [
      ...given.map(([name, value]) => [name, value ?? ''] as [string, string]),
      ...forwardedHeaders(host),
    ],
    body: method === 'GET' ? null : body,
    redirect: 'manual',
  })
  return answer
}

function forwardedHeaders(host: string): [string, string][] {
  return [
    ['x-forwarded-proto', 'http'],
    ['x-forwarded-host', host],
  ]
}

function tokenRequest(body: string, host: string) {
  const basic = Buffer.from(`${CLIENT_ID}:${encodeURIComponent(CLIENT_SECRET)}`).toString('base64')
  return {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `Basic ${basic}`,
      ...Object.fromEntries(forwardedHeaders(host)),
    },
    body,
  }
}

function toJwk({ kid, publicJwk }: SigningKey): JsonWebKey {
  return { ...publicJwk, kid, use: 'sig', alg: 'ES256' }
}

export function createSigningKey(): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { kid: randomUUID(), privateKey, publicJwk: publicKey.export({ format: 'jwk' }) }
}

export function readClaims(token: string): TokenClaims {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
}

function signToken(
  claims: object,
  { kid, privateKey }: SigningKey,
  { header = {}, signature }: { header?: object; signature?: string },
): string {
  const head = { alg: 'ES256', typ: 'JWT', kid, ...header }
  const signed = [head, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const real = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${signed}.${signature ?? real.toString('base64url')}`
}

async function listen(serve: RequestListener) {
  const server = createServer(serve)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  const host = `127.0.0.1:${address.port}`
  return {
    host,
    url: `http://${host}`,
    [Symbol.asyncDispose]: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
