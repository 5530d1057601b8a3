import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { ensurePages } from '../../src/command/build-pages.ts'

/** A dashboard with one source file, and a builder that copies it or, if requested, fails. */
function createDashboard({ hasBuilder = true }: { hasBuilder?: boolean } = {}) {
  const root = mkdtempSync(join(tmpdir(), 'annals-pages-'))
  const folder = join(root, 'dashboard')
  const write = (path: string, text: string) => {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  write('package.json', '{ "type": "module" }')
  write('src/main.ts', 'first')
  if (hasBuilder) {
    write('node_modules/vite/package.json', '{ "name": "vite", "type": "module" }')
    write(
      'node_modules/vite/bin/vite.js',
      `import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
       const source = readFileSync('src/main.ts', 'utf8')
       if (source === 'broken') throw new Error('x'.repeat(9_000) + ' no such thing as broken')
       mkdirSync('dist', { recursive: true })
       writeFileSync('dist/explorer.html', source)`,
    )
  }
  const lines: Record<string, unknown>[] = []
  const logger = pino({}, { write: (line) => void lines.push(JSON.parse(line)) })
  return {
    write,
    lines,
    ensure: () => ensurePages(logger, folder),
    built: () => readFileSync(join(folder, 'dist/explorer.html'), 'utf8'),
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  }
}

test('builds pages only if their sources have changed', async () => {
  using dashboard = createDashboard()
  assert.equal((await dashboard.ensure()).warning, null)
  await dashboard.ensure()
  dashboard.write('src/main.ts', 'second')
  const { folder, warning } = await dashboard.ensure()
  assert.equal(warning, null)
  assert(folder)
  assert.equal(dashboard.built(), 'second')
  dashboard.write('../sdk/src/client/parse-json.ts', 'shared')
  await dashboard.ensure()
  assert.deepEqual(
    dashboard.lines.map(({ event }) => event),
    ['pages.built', 'pages.built', 'pages.built'],
  )
})

test('processes that start at the same time build the pages once', async () => {
  using dashboard = createDashboard()
  const results = await Promise.all([dashboard.ensure(), dashboard.ensure(), dashboard.ensure()])
  for (const { folder, warning } of results)
    assert.deepEqual([folder === null, warning], [false, null])
  assert.deepEqual(
    dashboard.lines.map(({ event }) => event),
    ['pages.built'],
  )
})

test('serves old pages when a build fails, and reports it in the log and at startup', async () => {
  using dashboard = createDashboard()
  await dashboard.ensure()
  dashboard.write('src/main.ts', 'broken')
  const { folder, warning } = await dashboard.ensure()
  assert(folder)
  assert.equal(dashboard.built(), 'first')
  assert.match(warning ?? '', /older than their sources.*npm run build -w dashboard/)
  const [, failed] = dashboard.lines
  assert.equal(failed?.event, 'pages.failed')
  assert.equal(failed?.level, 50)
  assert.equal(failed?.isOldServed, true)
  const output = String(failed?.output)
  assert.match(output, /no such thing as broken/)
  assert(output.length <= 4_000)
  // Until it is fixed, every start reports it.
  assert.notEqual((await dashboard.ensure()).warning, null)
  dashboard.write('src/main.ts', 'mended')
  assert.equal((await dashboard.ensure()).warning, null)
})

test('without pages and a builder, startup says what to do', async () => {
  using dashboard = createDashboard({ hasBuilder: false })
  const { folder, warning } = await dashboard.ensure()
  assert.equal(folder, null)
  assert.match(warning ?? '', /are missing.*npm install/)
})

test('also reports changed sources without a builder', async () => {
  using dashboard = createDashboard({ hasBuilder: false })
  dashboard.write('dist/explorer.html', 'old')
  const { folder, warning } = await dashboard.ensure()
  assert(folder)
  assert.match(warning ?? '', /older than their sources.*npm install/)
})
