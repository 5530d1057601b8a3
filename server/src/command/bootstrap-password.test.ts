import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OperatorError } from '../errors.ts'
import { Secret } from '../platform/secret/secret.ts'
import { readBootstrapPassword } from './bootstrap-password.ts'

const NONE = { flag: undefined, variable: null, stdin: null }

async function* sending(...chunks: (string | Buffer)[]): AsyncGenerator<Buffer> {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

async function readFrom(...chunks: (string | Buffer)[]): Promise<string | undefined> {
  return (await readBootstrapPassword({ ...NONE, stdin: sending(...chunks) }))?.text
}

test('returns null without a source, and does not read standard input', async () => {
  assert.equal(await readBootstrapPassword(NONE), null)
})

test('reads the first line of standard input, whatever its line ending and chunks', async () => {
  for (const chunks of [
    ['correct horse\n'],
    ['correct horse\r\n'],
    ['correct horse'],
    ['correct ', 'horse', '\nsomething else\n'],
  ]) {
    assert.equal(await readFrom(...chunks), 'correct horse')
  }
  const accented = Buffer.from('çorrect horse\n')
  assert.equal(await readFrom(accented.subarray(0, 1), accented.subarray(1)), 'çorrect horse')
  assert.equal(await readFrom(' spaces count '), ' spaces count ')
  assert.equal(await readFrom(), '')
})

test('refuses an invalid password on standard input with a clear message', async () => {
  const isOperatorError = (sentence: RegExp) => (error: unknown) =>
    error instanceof OperatorError && sentence.test(error.message)
  await assert.rejects(readFrom(Buffer.from([0xff, 0x0a])), isOperatorError(/is not UTF-8/))
  async function* endless(): AsyncGenerator<Buffer> {
    for (;;) yield Buffer.alloc(1_000, 'x')
  }
  await assert.rejects(
    readBootstrapPassword({ ...NONE, stdin: endless() }),
    isOperatorError(/is too long/),
  )
})

test('refuses a password that is given more than once, from any two sources', async () => {
  const flag = 'correct horse'
  const variable = new Secret('correct horse')
  for (const sources of [
    { flag, variable, stdin: null },
    { flag, variable: null, stdin: sending(flag) },
    { flag: undefined, variable, stdin: sending(flag) },
  ]) {
    await assert.rejects(readBootstrapPassword(sources), /given more than once\. Use only one of/)
  }
})
