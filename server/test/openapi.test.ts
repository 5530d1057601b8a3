import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import spectral from '@stoplight/spectral-core'
import rulesets from '@stoplight/spectral-rulesets'
import { isObject, type JsonObject } from '../src/edge/openapi/json-object.ts'
import { escapePointer } from '../src/platform/json/json-fault.ts'

const FOLDER = join(import.meta.dirname, '../../openapi')
const DOCUMENTS = ['v1', 'dashboard'] as const

/** The contract has two operations that only ever respond with 403. */
const REFUSALS = [
  '/paths/~1v1~1keys~1{keyId}~1rotate/post/responses',
  '/paths/~1v1~1workspaces~1{workspaceId}~1keys/post/responses',
]

/** The identity provider sends browsers there, and they go on to a page. */
const REDIRECTS = ['/paths/~1dashboard~1oidc~1callback/get/responses']

for (const name of DOCUMENTS) {
  test(`Redocly finds no problem in openapi/${name}.json except refusals and redirects`, async () => {
    const expected = name === 'v1' ? REFUSALS : REDIRECTS
    assert.deepEqual(
      await redoclyProblems(join(FOLDER, `${name}.json`)),
      expected.map((pointer) => `operation-2xx-response #${pointer}`),
    )
  })
}

test('Spectral finds no problem in openapi/v1.json except the two refusals', async () => {
  const linter = new spectral.Spectral()
  linter.setRuleset(new spectral.Ruleset({ extends: [[rulesets.oas, 'recommended']] }))
  const results = await linter.run(readFileSync(join(FOLDER, 'v1.json'), 'utf8'))
  assert.deepEqual(
    results.map(({ code, path }) => `${code} ${pointerOf(path)}`).toSorted(),
    REFUSALS.map((pointer) => `operation-success-response ${pointer}`),
  )
})

async function redoclyProblems(file: string): Promise<string[]> {
  const folder = dirname(createRequire(import.meta.url).resolve('@redocly/cli/package.json'))
  const options = ['lint', '--extends=recommended', '--format=json', file]
  const output = await new Promise<string>((resolve) => {
    execFile(
      process.execPath,
      [join(folder, 'bin/cli.js'), ...options],
      // Nothing is sent to the vendor.
      { env: { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' } },
      // The exit code only repeats whether there are errors.
      (_error, stdout) => resolve(stdout),
    )
  })
  const { problems }: { problems: { ruleId: string; location: { pointer: string }[] }[] } =
    JSON.parse(output)
  return problems.map(({ ruleId, location }) => `${ruleId} ${location[0]?.pointer}`).toSorted()
}

function pointerOf(path: readonly (string | number)[]): string {
  return path.map((name) => `/${escapePointer(String(name))}`).join('')
}

for (const name of DOCUMENTS) {
  const document: unknown = JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8'))

  test(`openapi/${name}.json describes every field, parameter and header, and types every enum`, () => {
    const problems = nodesOf(document).flatMap(({ pointer, node }) => [
      ...undescribed(node.properties, pointer),
      // A field of a body can be named `headers` as well.
      ...(pointer.endsWith('/properties') ? [] : undescribed(node.headers, pointer)),
      ...(typeof node.in === 'string' && node.description === undefined ? [pointer] : []),
      ...(Array.isArray(node.enum) && node.type === undefined ? [pointer] : []),
    ])
    assert.deepEqual(problems, [])
  })
}

test('every body of the API has an example', () => {
  const document: unknown = JSON.parse(readFileSync(join(FOLDER, 'v1.json'), 'utf8'))
  const bodies = nodesOf(document).filter(({ pointer }) => /\/content\/[^/]+$/.test(pointer))
  assert(bodies.length > 40, `only ${bodies.length} bodies were found`)
  const problems = bodies.filter(({ node }) => node.example === undefined)
  assert.deepEqual(
    problems.map(({ pointer }) => pointer),
    [],
  )
})

/** Every object in a document apart from the examples. */
function nodesOf(value: unknown, pointer = ''): { pointer: string; node: JsonObject }[] {
  if (Array.isArray(value)) return value.flatMap((item, at) => nodesOf(item, `${pointer}/${at}`))
  if (!isObject(value)) return []
  const parts = Object.entries(value).filter(([name]) => name !== 'example')
  return [
    { pointer, node: value },
    ...parts.flatMap(([name, part]) => nodesOf(part, pointer + pointerOf([name]))),
  ]
}

/** A reference has the description of its target. */
function undescribed(named: unknown, pointer: string): string[] {
  const isDescribed = (node: unknown): boolean =>
    isObject(node) &&
    (node.description !== undefined ||
      node.$ref !== undefined ||
      (Array.isArray(node.anyOf) && node.anyOf.some(isDescribed)))
  return Object.entries(isObject(named) ? named : {})
    .filter(([, node]) => !isDescribed(node))
    .map(([name]) => `${pointer} ${name}`)
}
