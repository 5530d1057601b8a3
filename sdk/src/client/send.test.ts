import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Annals } from '../index.ts'

const MIB = 1_048_576

/** A client of a service whose responses have this many MiB, and how many of them the client has read. */
function clientOf(status: number, sizeMib: number) {
  const chunk = new TextEncoder().encode(' '.repeat(MIB))
  let readMib = 0
  let isCanceled = false
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    readMib += 1
    controller.enqueue(chunk)
    if (readMib === sizeMib) controller.close()
  }
  const cancel = () => {
    isCanceled = true
  }
  const annals = new Annals({
    apiKey: 'key',
    baseUrl: 'http://annals.example',
    retriesMax: 0,
    fetch: async () => new Response(new ReadableStream({ pull, cancel }), { status }),
  })
  return { annals, read: () => ({ readMib, isCanceled }) }
}

test('an error body of any size is read only up to 64 KiB', async () => {
  const { annals, read } = clientOf(502, 200)
  await assert.rejects(annals.keys.status(), { code: 'http_502', status: 502 })
  assert(read().isCanceled && read().readMib <= 2, JSON.stringify(read()))
})

test('a response that no service would send is read only up to 64 MiB', async () => {
  for (const call of [
    (annals: Annals) => annals.keys.status(),
    (annals: Annals) => annals.events.create({ category: 'c', action: 'a' }),
    (annals: Annals) => annals.proofs.checkpointText('w'),
  ]) {
    const { annals, read } = clientOf(200, 200)
    await assert.rejects(call(annals), { code: 'unexpected_response', status: 200 })
    assert(read().isCanceled && read().readMib <= 66, JSON.stringify(read()))
  }
})

test('a response that is not JSON is reported as such, for every call', async () => {
  const { annals } = clientOf(200, 1)
  const expected = { code: 'unexpected_response', message: /is not JSON/ }
  await assert.rejects(annals.keys.status(), expected)
  await assert.rejects(
    clientOf(200, 1).annals.events.create({ category: 'c', action: 'a' }),
    expected,
  )
})

test('keys are read correctly, whatever earlier responses contained', async () => {
  const bodies = [
    String.raw`{"metadata":{"a":1,"x\\":1}}`,
    String.raw`{"metadata":{"a":1,"x\"":2}}`,
  ]
  const annals = new Annals({
    apiKey: 'key',
    baseUrl: 'http://annals.example',
    fetch: async () => new Response(bodies.shift()),
  })
  assert.deepEqual((await annals.events.get('1')).metadata, { a: 1, 'x\\': 1 })
  assert.deepEqual((await annals.events.get('2')).metadata, { a: 1, 'x"': 2 })
})
