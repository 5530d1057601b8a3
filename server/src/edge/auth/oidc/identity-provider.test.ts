import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { test } from 'node:test'
import { manualClock } from '../../../../test/harness/timing/clock.ts'
import { ApiError } from '../../../errors.ts'
import { createLogger } from '../../../platform/logger.ts'
import { OidcError } from '../../../platform/oidc/oidc-error.ts'
import { Secret } from '../../../platform/secret/secret.ts'
import { IdentityProvider } from './identity-provider.ts'

/** For providers that never respond. Others get the usual time, because the machine may be busy. */
const SHORT_MS_MAX = 300

/** A server that responds as the test wants, and a client of it. */
async function startProvider(
  serve: (issuer: string) => RequestListener,
  { suffix = '', ...options }: { suffix?: string; operationMsMax?: number } = {},
) {
  const handler: { serve: RequestListener } = { serve: (_request, response) => response.end() }
  let requests = 0
  const server = createServer((request, response) => {
    requests += 1
    handler.serve(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  const issuer = `http://127.0.0.1:${address.port}`
  handler.serve = serve(issuer)
  const time = manualClock(0)
  const provider = new IdentityProvider({
    settings: {
      issuer: `${issuer}${suffix}`,
      clientId: 'annals',
      clientSecret: new Secret('secret'),
      scopes: 'openid email',
      groupsClaim: 'groups',
      redirectUri: 'http://annals.test/dashboard/oidc/callback',
    },
    name: 'Example ID',
    monotonic: time.clock,
    logger: createLogger('silent'),
    hasRateLimits: true,
    ...options,
  })
  return {
    issuer,
    provider,
    time,
    handler,
    countRequests: () => requests,
    [Symbol.asyncDispose]: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

const metadataOf = (issuer: string) => ({
  issuer,
  authorization_endpoint: `${issuer}/auth`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/jwks`,
})
const json =
  (body: unknown): RequestListener =>
  (_request, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(body))
  }
const honest = (issuer: string) => json(metadataOf(issuer))
const down: RequestListener = (request) => void request.socket.destroy()

async function failureOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'none'
  } catch (error) {
    return error instanceof OidcError ? error.failure : 'other'
  }
}

test('sends the browser to the provider with a challenge, a state and a nonce', async () => {
  await using started = await startProvider(honest)
  const { url, secrets } = await started.provider.start()
  const { origin, pathname, searchParams } = new URL(url)
  assert.deepEqual([origin, pathname], [started.issuer, '/auth'])
  const { code_challenge: challenge = '', ...others } = Object.fromEntries(searchParams)
  assert.deepEqual(others, {
    response_type: 'code',
    client_id: 'annals',
    redirect_uri: 'http://annals.test/dashboard/oidc/callback',
    scope: 'openid email',
    code_challenge_method: 'S256',
    state: secrets.state,
    nonce: secrets.nonce,
  })
  assert.match(challenge, /^[\w-]{43}$/)
  assert(!url.includes(secrets.verifier))
  assert.notDeepEqual((await started.provider.start()).secrets, secrets)
})

test('reads the metadata once an hour, however many sign-ins start', async () => {
  await using started = await startProvider(honest)
  const { provider, time } = started
  await Promise.all(Array.from({ length: 20 }, () => provider.start()))
  time.advance(59 * 60_000)
  await provider.start()
  assert.equal(started.countRequests(), 1)
  time.advance(60_000)
  await provider.start()
  assert.equal(started.countRequests(), 2)
})

test('asks a provider that is down at most every five seconds, and uses it when it is back', async () => {
  await using started = await startProvider(() => down)
  const { provider, time, handler, issuer } = started
  for (let tries = 0; tries < 10; tries += 1) {
    assert.equal(await failureOf(provider.start()), 'unavailable')
  }
  assert.equal(started.countRequests(), 1)
  handler.serve = honest(issuer)
  time.advance(5_000)
  assert.equal(await failureOf(provider.start()), 'none')
})

test('uses the old metadata for a day if the provider does not respond', async () => {
  await using started = await startProvider(honest)
  const { provider, time, handler } = started
  await provider.start()
  handler.serve = down
  time.advance(2 * 60 * 60_000)
  assert.equal(await failureOf(provider.start()), 'none')
  time.advance(23 * 60 * 60_000)
  assert.equal(await failureOf(provider.start()), 'unavailable')
})

const HUGE = 'x'.repeat(300 * 1_024)
const SILENCES: Record<string, RequestListener> = {
  'never answers': () => {},
  'stops in the middle': (_request, response) => void response.write('{'),
}
for (const [what, serve] of Object.entries(SILENCES)) {
  test(`a provider that ${what} is unavailable`, async () => {
    await using started = await startProvider(() => serve, { operationMsMax: SHORT_MS_MAX })
    assert.equal(await failureOf(started.provider.start()), 'unavailable')
  })
}

const FAULTS: Record<string, [failure: string, serve: (issuer: string) => RequestListener]> = {
  'sends too much': ['unavailable', (issuer) => json({ ...metadataOf(issuer), huge: HUGE })],
  'answers with 503': [
    'unavailable',
    () => (_request, response) => void response.writeHead(503).end(),
  ],
  'sends garbage': ['invalid', () => (_request, response) => void response.end('<html>')],
  'names another issuer': ['invalid', () => honest('https://evil.example')],
  'has no keys': ['invalid', (issuer) => json({ ...metadataOf(issuer), jwks_uri: undefined })],
  'has no page': [
    'invalid',
    (issuer) => json({ ...metadataOf(issuer), authorization_endpoint: 'nowhere' }),
  ],
}
for (const [what, [failure, serve]] of Object.entries(FAULTS)) {
  test(`a provider that ${what} is ${failure}`, async () => {
    await using started = await startProvider(serve)
    assert.equal(await failureOf(started.provider.start()), failure)
  })
}

test('a trailing slash in the issuer makes no difference', async () => {
  await using started = await startProvider(honest, { suffix: '/' })
  await started.provider.start()
  assert.equal(started.provider.issuer, started.issuer)
})

test('strangers from many networks keep no member of a known network from signing in', async () => {
  await using started = await startProvider(honest)
  const { provider } = started
  const { secrets } = await provider.start()
  let networks = 0
  const identify = async (query: string, isKnown = false) => {
    networks += 1
    const address = `192.0.${Math.floor(networks / 250)}.${networks % 250}`
    const parameters = new URLSearchParams(`${query}&state=${secrets.state}`)
    try {
      await provider.identify(parameters, secrets, { address, isKnown })
      return 'none'
    } catch (error) {
      return error instanceof ApiError ? error.code : 'failed'
    }
  }
  const repeat = async (count: number, work: () => Promise<string>) => {
    const outcomes = []
    for (let nth = 0; nth < count; nth += 1) outcomes.push(await work())
    return outcomes.filter((outcome) => outcome === 'overloaded').length
  }
  // The provider is not asked about these.
  assert.equal(await repeat(150, () => identify('error=access_denied')), 0)
  assert.equal(await repeat(120, () => identify('code=guess')), 20)
  assert.equal(await repeat(30, () => identify('code=guess', true)), 0)
})
