import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Client } from 'pg'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { logIn } from '../harness/sign-in/login.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'
import { ANY_DESTINATION, makeWebhook } from '../harness/webhook/webhooks.ts'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const annals = stack.use(await startTestApp({ env: ANY_DESTINATION }))
const company = await annals.createCompany()
const { workspaceKey: key, companyKey, workspace, user } = company
const owner = await signInAs(annals, company, 'OWNER')
const webhookId = await makeWebhook(annals, company, { url: 'http://127.0.0.1:9/' })
const admin = new Client(annals.database.connection)
await admin.connect()
stack.defer(() => admin.end())

/** Makes every write fail as on a full disk. */
const FILL_DISK = `
  create function no_space() returns trigger language plpgsql as
    $$ begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$;
  do $$
  declare name text;
  begin
    for name in select c.oid::regclass from pg_class c
                 where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
                   and not c.relispartition
    loop
      execute format('create trigger full_disk before insert or update or delete on %s
                      for each statement execute function no_space()', name);
    end loop;
  end $$`

const event = { category: 'c', action: 'a' }
const post = (path: string, body?: unknown) =>
  annals.call('POST', path, { key, ...(body !== undefined && { body }) })
const ofWebhook = (method: string, action = '') =>
  annals.call(method, `/v1/webhooks/${webhookId}${action}`, { key: companyKey })
/** One of each kind of route that writes. */
const WRITES: Record<string, () => Promise<TestResponse>> = {
  'an event': () => post('/v1/events', event),
  'an event with a key': () => post('/v1/events', { ...event, idempotencyKey: 'k' }),
  'a batch': () => post('/v1/events/batch', { events: [event, event] }),
  'a webhook': () =>
    annals.call('POST', `/v1/workspaces/${workspace.id}/webhooks`, {
      key: companyKey,
      body: { url: 'http://127.0.0.1:9/' },
    }),
  'the disabling of a webhook': () => ofWebhook('POST', '/disable'),
  'the rotation of a secret': () => ofWebhook('POST', '/rotate-secret'),
  'the removal of a webhook': () => ofWebhook('DELETE'),
  'an export': () => post('/v1/exports', { source: 'HOT', format: 'CSV' }),
  'a change in the dashboard': () =>
    owner.call('POST', '/dashboard/workspaces', { body: { name: 'Staging' } }),
  'a view': () =>
    owner.call('POST', '/dashboard/explorer/views', {
      body: { name: 'Mine', workspaceId: null, visibility: 'PRIVATE', query: {} },
    }),
  'a login': () => logIn(annals, { email: user.email, password: user.password }),
  'a logout': () => owner.call('DELETE', '/dashboard/session'),
}

test('on a full disk, routes that write return 503 and routes that read keep working', async (t) => {
  // Repeated, because it locks all tables and can deadlock with a statement of the service.
  await eventually(() => admin.query(FILL_DISK))
  for (const [what, write] of Object.entries(WRITES)) {
    await t.test(what, async () => {
      const { status, json, text, headers } = await write()
      assert.deepEqual([status, json?.code], [503, 'unavailable'], text)
      assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/)
    })
  }
  assert.equal((await annals.call('GET', '/ready')).status, 503)
  assert.equal((await annals.call('GET', '/v1/events', { key })).status, 200)
  assert.equal((await owner.call('GET', '/dashboard/session')).status, 200)

  await eventually(() => admin.query('drop function no_space cascade'))
  await eventually(async () => assert.equal((await annals.call('GET', '/ready')).status, 200))
  assert.equal((await post('/v1/events', event)).status, 201)
})
