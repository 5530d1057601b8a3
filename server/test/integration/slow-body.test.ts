import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertErrorShape } from '../harness/http/error-shape.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { RawConnection } from '../harness/http/raw-http.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())

/** Sends a request without the last byte of its body, which `finish` sends. */
async function openRequest(line: string, headers: string, body: object) {
  const text = JSON.stringify(body)
  const connection = new RawConnection(annals.url)
  const head = `${line} HTTP/1.1\r\nhost: x\r\n${headers}content-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n`
  connection.send(head + text.slice(0, -1))
  return {
    connection,
    finish: () => connection.send(text.slice(-1)).response(),
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  }
}

/** Long enough to count as slow, and for every cache of the node to notice a revocation. */
async function untilRefused(call: () => Promise<{ status: number }>): Promise<void> {
  await eventually(async () => assert.equal((await call()).status, 401))
  const sinceMs = performance.now()
  await eventually(() => assert(performance.now() - sinceMs > 300))
}

test('a request whose member is removed while its body arrives is rejected', async () => {
  const company = await annals.createCompany()
  const [owner, admin] = [
    await signInAs(annals, company, 'OWNER'),
    await signInAs(annals, company, 'ADMIN'),
  ]
  const headers = `cookie: ${admin.cookie}\r\nsec-fetch-site: same-origin\r\n`
  const body = { name: 'backdoor', scope: 'COMPANY' }
  await using request = await openRequest('POST /dashboard/keys', headers, body)
  assert.equal((await owner.call('DELETE', `/dashboard/members/${admin.userId}`)).status, 204)
  await untilRefused(() => admin.call('GET', '/dashboard/session'))
  assertErrorShape(await request.finish(), { status: 401, code: 'not_signed_in' })
  const { json } = await owner.call('GET', '/dashboard/keys')
  assert(!JSON.stringify(json).includes('backdoor'))
})

test('a request whose member gets a lower role while its body arrives is rejected', async () => {
  const company = await annals.createCompany()
  const [owner, admin] = [
    await signInAs(annals, company, 'OWNER'),
    await signInAs(annals, company, 'ADMIN'),
  ]
  const headers = `cookie: ${admin.cookie}\r\nsec-fetch-site: same-origin\r\n`
  await using request = await openRequest('PATCH /dashboard/company', headers, { name: 'Mine' })
  const change = { body: { role: 'VIEWER', workspaceIds: [company.workspace.id] } }
  const path = `/dashboard/members/${admin.userId}`
  assert.equal((await owner.call('PATCH', path, change)).status, 200)
  const sinceMs = performance.now()
  await eventually(() => assert(performance.now() - sinceMs > 300))
  assertErrorShape(await request.finish(), { status: 403, code: 'insufficient_role' })
})

test('an event whose key is revoked while its body arrives is rejected', async () => {
  const company = await annals.createCompany()
  const owner = await signInAs(annals, company, 'OWNER')
  const { workspaceKey: key, workspace } = company
  const headers = `authorization: Bearer ${key}\r\n`
  const body = { category: 'late', action: 'late' }
  await using request = await openRequest('POST /v1/events', headers, body)
  const { json } = await owner.call('GET', `/dashboard/keys?workspaceId=${workspace.id}`)
  for (const { id } of json.data) await owner.call('POST', `/dashboard/keys/${id}/revoke`)
  await untilRefused(() => annals.call('GET', '/v1/keys/status', { key }))
  assertErrorShape(await request.finish(), { status: 401, code: 'invalid_api_key' })
})

test('a slow body of a caller who keeps access is served', async () => {
  const { workspaceKey: key } = await annals.createCompany()
  const headers = `authorization: Bearer ${key}\r\n`
  await using request = await openRequest('POST /v1/events', headers, {
    category: 'slow',
    action: 'slow',
  })
  const sinceMs = performance.now()
  await eventually(() => assert(performance.now() - sinceMs > 300))
  assert.equal((await request.finish()).status, 201)
})
