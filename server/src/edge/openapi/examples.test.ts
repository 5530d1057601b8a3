import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { registerFormats } from '../schema/formats.ts'
import { DeliveredEvent } from '../schema/event.ts'
import { ExportRow, ExportStub } from '../schema/export-file.ts'
import { EXAMPLES, ROW } from './examples.ts'

const VECTORS = join(import.meta.dirname, '../../../../vectors')
registerFormats()

function assertMatches(schema: TSchema, value: unknown): void {
  assert.deepEqual(Compile(schema).Errors(value), [])
}

test('the example event is the first event of the test vectors', () => {
  const { chains } = JSON.parse(readFileSync(join(VECTORS, 'chain.json'), 'utf8'))
  assert.deepEqual(ROW, chains[0].events[0].event)
  assertMatches(ExportRow, ROW)
  const { actor: _actor, resource: _resource, metadata: _metadata, salts: _salts, ...core } = ROW
  assertMatches(ExportStub, { stub: true, ...core })
  assert.notDeepEqual(Compile(ExportStub).Errors(core), [])
})

test('the example delivery has the body of the webhook test vectors', () => {
  const { cases } = JSON.parse(readFileSync(join(VECTORS, 'webhook.json'), 'utf8'))
  const body = JSON.parse(cases[0].body)
  assert.deepEqual(EXAMPLES.DeliveredEvent, body)
  assertMatches(DeliveredEvent, body)
})
