import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'pg-connection-string'
import { hostAndPort, parseDatabaseUrl, parseReplicaUrl } from './server-address.ts'

/** How `pg` parses each server of an address. */
const read = (text: string) =>
  parseDatabaseUrl(text).servers.map((server) => {
    assert('connectionString' in server)
    const { host, port, user, password, database } = parse(server.connectionString)
    return [host, port, user, password, database]
  })

const refusalOf = (text: string): string => {
  try {
    parseDatabaseUrl(text)
  } catch (error) {
    assert(error instanceof Error)
    return error.message
  }
  return ''
}

test('parses each host of a list with its own port, and one login and database for all', () => {
  assert.deepEqual(
    read('postgres://u%40x:p%2Cw@a:5432,b.example.com:5433,[::1]:5434,[fe80::2],c/my%20db'),
    [
      ['a', '5432', 'u@x', 'p,w', 'my db'],
      ['b.example.com', '5433', 'u@x', 'p,w', 'my db'],
      ['::1', '5434', 'u@x', 'p,w', 'my db'],
      ['fe80::2', '', 'u@x', 'p,w', 'my db'],
      ['c', '', 'u@x', 'p,w', 'my db'],
    ],
  )
})

test('parses hosts and ports in the query, including sockets and IPv6 addresses', () => {
  const rest = ['u', 'p', 'db']
  assert.deepEqual(read('postgres://u:p@/db?host=a,b&port=1,2'), [
    ['a', '1', ...rest],
    ['b', '2', ...rest],
  ])
  assert.deepEqual(read('postgresql://u:p@x:7/db?host=/run/pg,::1'), [
    ['/run/pg', '7', ...rest],
    ['::1', '7', ...rest],
  ])
  assert.deepEqual(read('postgres://u:p@%2Frun%2Fpg:7,b:8/db'), [
    ['/run/pg', '7', ...rest],
    ['b', '8', ...rest],
  ])
})

test('leaves a single host unchanged, and passes other parameters to the driver', () => {
  const { servers, needsPrimary } = parseDatabaseUrl(
    'postgresql://u:p@db:5432/annals?sslmode=no-verify',
  )
  assert.deepEqual(servers, [
    { connectionString: 'postgresql://u:p@db:5432/annals?sslmode=no-verify' },
  ])
  assert.equal(needsPrimary, false)
  assert.deepEqual(read('postgres:///db'), [['', '', '', '', 'db']])
  assert.deepEqual(read('postgres://u:p@/db'), [['', '', 'u', 'p', 'db']])
})

test('requires the primary of a list, and of a single host if the address says so', () => {
  assert.equal(parseDatabaseUrl('postgres://a,b/db').needsPrimary, true)
  assert.equal(
    parseDatabaseUrl('postgres://a/db?target_session_attrs=read-write').needsPrimary,
    true,
  )
  assert.equal(parseDatabaseUrl('postgres://a/db?target_session_attrs=any').needsPrimary, false)
})

test('keeps settings of the address separate, so that they do not replace ours', () => {
  const { servers } = parseDatabaseUrl(
    'postgres://a/db?options=-c%20work_mem%3D8MB&application_name=x',
  )
  assert.deepEqual(servers, [{ connectionString: 'postgres://a/db', options: '-c work_mem=8MB' }])
})

test('refuses an invalid address with an accurate message that contains no secret', () => {
  assert.match(refusalOf('mysql://u:hunter2@a/db'), /starts with postgres:/)
  assert.match(refusalOf('postgres://u:hunter2@a:1,b:2,c:3/db?port=1,2'), /one port for each host/)
  assert.match(refusalOf('postgres://u:hunter2@a:0/db'), /port that is not a number/)
  assert.match(refusalOf('postgres://u:hunter2@a:x/db'), /port that is not a number/)
  assert.match(refusalOf('postgres://u:hunter2@a,,b/db'), /empty host/)
  assert.match(refusalOf('postgres://u:hunter2@[::1/db'), /\[::1\]:port/)
  assert.match(refusalOf('postgres://u:hunt#er2@a/db'), /percent-encode/)
  assert.match(refusalOf('postgres://u:hunter2@a b/db'), /percent-encode/)
  for (const target of ['standby', 'read-only', 'prefer-standby', 'x']) {
    const text = `postgres://u:hunter2@a,b/db?target_session_attrs=${target}`
    assert.match(refusalOf(text), /target_session_attrs=read-write/)
    assert(!refusalOf(text).includes('hunter2'))
  }
})

test('the address of a replica can list standbys, but not require a primary', () => {
  const { servers, needsPrimary } = parseReplicaUrl(
    'postgres://u:p@a,b:5433/db?target_session_attrs=standby',
  )
  assert.deepEqual([servers.map(hostAndPort), needsPrimary], [['a:5432', 'b:5433'], false])
  for (const target of ['read-write', 'primary', 'x']) {
    const text = `postgres://u:hunter2@a/db?target_session_attrs=${target}`
    assert.throws(() => parseReplicaUrl(text), /leave target_session_attrs out/)
  }
})

test('describes the location of a server without its login', () => {
  const [first, second] = parseDatabaseUrl('postgres://u:hunter2@a,[::1]:5433/db').servers
  assert(first && second)
  assert.deepEqual([hostAndPort(first), hostAndPort(second)], ['a:5432', '[::1]:5433'])
})
