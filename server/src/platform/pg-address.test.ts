import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'pg-connection-string'
import { parseAddress, placeOf } from './pg-address.ts'

/** What `pg` makes of each server of an address. */
const read = (text: string) =>
  parseAddress(text).servers.map((server) => {
    assert('connectionString' in server)
    const { host, port, user, password, database } = parse(server.connectionString)
    return [host, port, user, password, database]
  })

const refusalOf = (text: string): string => {
  try {
    parseAddress(text)
  } catch (error) {
    assert(error instanceof Error)
    return error.message
  }
  return ''
}

test('reads each host of a list with its own port, and the login and database for all of them', () => {
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

test('reads hosts and ports from the query, sockets and IPv6 addresses included', () => {
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

test('one host is read as before, and other parameters reach the driver', () => {
  const { servers, needsPrimary } = parseAddress(
    'postgresql://u:p@db:5432/annals?sslmode=no-verify',
  )
  assert.deepEqual(servers, [
    { connectionString: 'postgresql://u:p@db:5432/annals?sslmode=no-verify' },
  ])
  assert.equal(needsPrimary, false)
  assert.deepEqual(read('postgres:///db'), [['', '', '', '', 'db']])
  assert.deepEqual(read('postgres://u:p@/db'), [['', '', 'u', 'p', 'db']])
})

test('asks for the primary of a list, and of one host when the address does', () => {
  assert.equal(parseAddress('postgres://a,b/db').needsPrimary, true)
  assert.equal(parseAddress('postgres://a/db?target_session_attrs=read-write').needsPrimary, true)
  assert.equal(parseAddress('postgres://a/db?target_session_attrs=any').needsPrimary, false)
})

test('settings of the address are kept apart, so that they do not replace ours', () => {
  const { servers } = parseAddress('postgres://a/db?options=-c%20work_mem%3D8MB&application_name=x')
  assert.deepEqual(servers, [{ connectionString: 'postgres://a/db', options: '-c work_mem=8MB' }])
})

test('refuses an address with a true sentence that has no secret in it', () => {
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

test('names where a server is without its login', () => {
  const [first, second] = parseAddress('postgres://u:hunter2@a,[::1]:5433/db').servers
  assert(first && second)
  assert.deepEqual([placeOf(first), placeOf(second)], ['a:5432', '[::1]:5433'])
})
