import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  DESTINATION_CHARACTERS_MAX,
  destinationFault,
  type DestinationRules,
} from './destination.ts'
import { rounds } from '../../../../test/harness/timing/fault-rounds.ts'
import { isPublicAddress } from './public-address.ts'

const PUBLIC: DestinationRules = { mode: 'public', ports: [] }
const ANY: DestinationRules = { mode: 'any', ports: [] }

test('accepts HTTPS URLs with a host name or a public address', () => {
  for (const url of [
    'https://example.com/annals?tenant=1',
    'https://example.com./',
    'https://EXAMPLE.com:443/',
    'https://例え.jp/',
    'https://a_b.example.com/',
    'https://8.8.8.8/',
    'https://[2606:4700::1111]/',
    'https://[::ffff:8.8.8.8]/',
    'https://internal.example.com/',
    'https://mylocalhost.com/',
    'https://example.notlocal/',
  ]) {
    assert.equal(destinationFault(url, PUBLIC), null, url)
    assert.equal(destinationFault(url, ANY), null, url)
  }
})

const FAULTS: Record<string, string> = {
  '': 'is not a valid URL',
  'example.com': 'is not a valid URL',
  'https://': 'is not a valid URL',
  'https://[fe80::1%25eth0]/': 'is not a valid URL',
  'https://example.com:65536/': 'is not a valid URL',
  'https://user@example.com/': 'must not contain a user name or password',
  'https://:secret@example.com/': 'must not contain a user name or password',
  'https://example.com/#part': 'must not contain a fragment',
  'https://example.com/#': 'must not contain a fragment',
  'https://example..com/': 'has a host that is not a valid name',
  'https://example.com../': 'has a host that is not a valid name',
  'https://10.0.0.1../': 'has a host that is not a valid name',
  'https://.example.com/': 'has a host that is not a valid name',
  [`https://${'a'.repeat(64)}.com/`]: 'has a host that is not a valid name',
  [`https://${'a.'.repeat(127)}com/`]: 'has a host that is not a valid name',
}

for (const [url, fault] of Object.entries(FAULTS)) {
  test(`"${url.slice(0, 40)}" ${fault}, in either mode`, () => {
    assert.equal(destinationFault(url, PUBLIC), fault)
    assert.equal(destinationFault(url, ANY), fault)
  })
}

test('accepts only https in public mode, and also http in development', () => {
  assert.equal(destinationFault('http://example.com/', PUBLIC), 'must be https')
  assert.equal(destinationFault('http://example.com/', ANY), null)
  for (const url of ['ftp://example.com/', 'file:///etc/passwd', 'data:,x', 'unix:/run/x.sock']) {
    assert.equal(destinationFault(url, PUBLIC), 'must be https')
    assert.equal(destinationFault(url, ANY), 'must be http or https')
  }
})

test('accepts only port 443 or configured ports, and any port in development', () => {
  const url = 'https://example.com:8443/'
  assert.equal(destinationFault(url, PUBLIC), 'uses port 8443, but the allowed ports are 443')
  const others = { ...PUBLIC, ports: [443, 9443] }
  assert.equal(destinationFault(url, others), 'uses port 8443, but the allowed ports are 443, 9443')
  assert.equal(destinationFault(url, { ...PUBLIC, ports: [8443] }), null)
  assert.equal(destinationFault('https://example.com/', { ...PUBLIC, ports: [8443] }), null)
  assert.equal(
    destinationFault('https://example.com:80/', PUBLIC),
    'uses port 80, but the allowed ports are 443',
  )
  assert.equal(
    destinationFault('https://example.com:0/', PUBLIC),
    'uses port 0, but the allowed ports are 443',
  )
  assert.equal(destinationFault(url, ANY), null)
})

test('rejects loopback addresses in any notation', () => {
  for (const host of [
    '127.0.0.1',
    '127.0.0.1.',
    '127.1',
    '0x7f.1',
    '0x7f000001',
    '017700000001',
    '2130706433',
    '0177.0.0.01',
    '127.0.0.1%2e',
    '%31%32%37.0.0.1',
    '①②⑦.0.0.1',
    '127。0。0。1',
  ]) {
    const fault = 'is the address 127.0.0.1, which is not public'
    assert.equal(destinationFault(`https://${host}/`, PUBLIC), fault, host)
  }
  for (const host of [
    '::1',
    '0:0:0:0:0:0:0:1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::127.0.0.1',
    '::7f00:1',
    '64:ff9b::127.0.0.1',
    '2002:7f00:1::',
    '2001:0:7f00:1::',
  ]) {
    const fault = destinationFault(`https://[${host}]/`, PUBLIC)
    assert.match(fault ?? '', /^is the address \S+, which is not public$/, host)
  }
})

test('treats numeric notations of an IPv4 address like the address itself', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
      const number = ((a * 256 + b) * 256 + c) * 256 + d
      const expected = isPublicAddress(address)
        ? null
        : `is the address ${address}, which is not public`
      for (const host of [
        address,
        `${address}.`,
        `${number}`,
        `0x${number.toString(16)}`,
        `0${number.toString(8)}`,
        `0x${a.toString(16)}.0${b.toString(8)}.${c * 256 + d}`,
      ]) {
        assert.equal(destinationFault(`https://${host}/`, PUBLIC), expected, host)
      }
    }),
  )
})

test('rejects internal host names, except in development', () => {
  for (const [host, name] of [
    ['localhost', 'localhost'],
    ['LOCALHOST.', 'localhost'],
    ['app.localhost', 'app.localhost'],
    ['localhost。', 'localhost'],
    ['postgres', 'postgres'],
    ['printer.local', 'printer.local'],
    ['metadata.google.internal', 'metadata.google.internal'],
    ['metadata.google.internal.', 'metadata.google.internal'],
    ['nas.home.arpa', 'nas.home.arpa'],
    ['home.arpa', 'home.arpa'],
  ]) {
    const fault = `is on the host ${name}, which is not a public name`
    assert.equal(destinationFault(`https://${host}/`, PUBLIC), fault)
    assert.equal(destinationFault(`http://${host}:8080/`, ANY), null)
  }
})

test('accepts private addresses in development', () => {
  for (const host of ['127.0.0.1', '10.0.0.1', '[::1]', '[fd00::1]']) {
    assert.equal(destinationFault(`http://${host}:3000/in`, ANY), null)
  }
})

test('limits a URL to 2,048 characters, as given and as sent', () => {
  const fault = 'is longer than 2048 characters'
  const start = 'https://example.com/'
  const longest = start.padEnd(DESTINATION_CHARACTERS_MAX, 'a')
  assert.equal(destinationFault(longest, PUBLIC), null)
  assert.equal(destinationFault(`${longest}a`, PUBLIC), fault)
  assert.equal(destinationFault(start + 'ä'.repeat(400), PUBLIC), fault)
  assert.equal(destinationFault(start.padEnd(DESTINATION_CHARACTERS_MAX + 1), ANY), fault)
})

test('never throws, and accepts no URL with a user name, a fragment or a private address', () => {
  // Includes lone surrogates and control characters.
  const noise = fc.uint16Array({ maxLength: 20 }).map((units) => String.fromCharCode(...units))
  const host = fc.oneof(
    noise,
    fc.domain(),
    fc.ipV4Extended(),
    fc.ipV6().map((ip) => `[${ip}]`),
  )
  const parts = fc.tuple(
    fc.constantFrom('https://', 'https:', 'HTTPS:\\\\', 'http://', ''),
    fc.constantFrom('', '', '', '@', 'user@', ':secret@'),
    host,
    fc.constantFrom('', '', ':443', ':8443'),
    fc.constantFrom('', '/', '?', '#', '/in#part'),
  )
  fc.assert(
    fc.property(
      fc.oneof(
        noise,
        parts.map((each) => each.join('')),
      ),
      (url) => {
        assert.equal(typeof (destinationFault(url, ANY) ?? ''), 'string')
        if (destinationFault(url, PUBLIC) !== null) return
        const { protocol, username, password, href, hostname } = new URL(url)
        assert.equal(protocol, 'https:')
        assert.equal(username + password, '')
        assert(!href.includes('#'))
        const host = hostname.replace(/[[\]]/g, '')
        assert(isIP(host) === 0 || isPublicAddress(host))
      },
    ),
    { numRuns: rounds(300, 1_000) },
  )
})
