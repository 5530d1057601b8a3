import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { sendEvents } from '../harness/dashboard/explorer.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

const tenant = await annals.createCompany()
const member = await signInAs(annals, tenant, 'OWNER')
await sendEvents(
  annals,
  tenant.workspaceKey,
  Array.from({ length: 60 }, (_, nth) => ({ category: `c${nth}`, action: `long.enough.${nth}` })),
)

const codingOf = async (path: string, headers: Record<string, string>) => {
  const { status, headers: responseHeaders, json } = await member.call('GET', path, { headers })
  assert.equal(status, 200)
  return {
    coding: responseHeaders.get('content-encoding'),
    vary: responseHeaders.get('vary'),
    json,
  }
}

const LISTS = [
  '/dashboard/events?limit=50',
  '/dashboard/events/metrics/histogram?by=category',
  '/dashboard/events/filter-options?field=action&limit=50',
]

for (const path of LISTS) {
  test(`${path} is compressed for our own pages, with the same content`, async () => {
    const packed = await codingOf(path, { 'accept-encoding': 'gzip, deflate, br' })
    assert.equal(packed.coding, 'gzip')
    const plain = await codingOf(path, { 'accept-encoding': 'identity' })
    assert.equal(plain.coding, null)
    const { data, series, values } = plain.json
    assert((data ?? series ?? values).length > 1)
    assert.deepEqual(
      [packed.json.data, packed.json.series, packed.json.values],
      [data, series, values],
    )
    assert.equal(packed.vary, 'accept-encoding, sec-fetch-site')
  })

  test(`${path} is not compressed for another site’s page, so that its length reveals nothing`, async () => {
    for (const site of ['cross-site', 'same-site', 'none']) {
      const headers = { 'accept-encoding': 'gzip', 'sec-fetch-site': site }
      assert.equal((await codingOf(path, headers)).coding, null, site)
    }
  })
}

test('never compresses short responses or those that may contain a secret', async () => {
  const short = '/dashboard/events?limit=50&text=nothing+has+this'
  const headers = { 'accept-encoding': 'gzip' }
  assert.equal((await codingOf(short, headers)).coding, null)
  for (const path of ['session', 'sessions', 'keys', 'members', 'integrity']) {
    const response = await member.call('GET', `/dashboard/${path}`, { headers })
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-encoding'), null, path)
  }
})
