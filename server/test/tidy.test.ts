import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { test } from 'node:test'
import { readRequestSchemas } from './harness/openapi/route-schemas.ts'
import { isLinear, unboundedParts } from './harness/openapi/schema-bounds.ts'

const SERVER = join(import.meta.dirname, '..')
const SRC = join(SERVER, 'src')
const DASHBOARD = join(SERVER, '../dashboard')
const SDK = join(SERVER, '../sdk')
/** Generated from `openapi/v1.json`. */
const SDK_TYPES = join(SDK, 'src/schema.ts')
const LINES_MAX = 500
const FOLDER_FILES_MAX = 22
/** An auditor copies and reads one file, so the verifier can't be split. */
const VERIFIER_LINES_MAX = 1_800

/** Reading order is dependency order: a folder may import itself and the folders on its line. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  platform: [],
  tenancy: ['platform'],
  ledger: ['tenancy', 'platform'],
  intake: ['ledger', 'tenancy', 'platform'],
  outlet: ['ledger', 'tenancy', 'platform'],
  edge: ['intake', 'outlet', 'ledger', 'tenancy', 'platform'],
}

/** Every file that can import from the program or the dashboard. */
const IMPORTING = [
  `${SERVER}/{src,test,tools}/**/*.ts`,
  `${DASHBOARD}/{src,test}/**/*.{ts,tsx}`,
  `${SDK}/{src,tools}/**/*.ts`,
  join(SERVER, '../examples/**/*.ts'),
  join(SERVER, '../bench/**/*.ts'),
]
const EXPORTED = /^export (?:async )?(?:type|function\*?|const|class|abstract class) (\w+)/gm

const sources = globSync(`${SRC}/**/*.ts`).map((path) => ({
  path,
  name: relative(SERVER, path),
  text: readFileSync(path, 'utf8'),
}))
const tests = globSync([`${SERVER}/test/**/*.ts`, `${DASHBOARD}/test/**/*.ts`]).map((path) => ({
  path,
  name: relative(SERVER, path),
  text: readFileSync(path, 'utf8'),
}))
const program = sources.filter(({ name }) => !name.endsWith('.test.ts'))
const sdk = globSync(`${SDK}/{src,tools}/**/*.ts`, { exclude: [SDK_TYPES] }).map((path) => ({
  path,
  name: relative(SERVER, path),
  text: readFileSync(path, 'utf8'),
}))
const sdkProgram = sdk.filter(({ name }) => !name.endsWith('.test.ts'))

function importsOf({ path, text }: { path: string; text: string }): string[] {
  return [...text.matchAll(/(?:from |import |import\()'(\.{1,2}\/[^']+)'/g)].map(([, target]) =>
    join(dirname(path), target ?? ''),
  )
}

test('every import follows the flow edge > intake|outlet > ledger > tenancy > platform', () => {
  const problems: string[] = []
  for (const file of sources) {
    const from = relative(SRC, file.path).split(sep)[0] ?? ''
    for (const target of importsOf(file)) {
      const to = relative(SRC, target).split(sep)[0] ?? ''
      const allowed = MAY_IMPORT[from]
      if (allowed && to !== from && to in MAY_IMPORT && !allowed.includes(to)) {
        problems.push(`${file.name}: ${from} may not import ${to}`)
      }
    }
  }
  assert.deepEqual(problems, [])
})

test('only the commands that are clients of the API import the SDK', () => {
  const problems = program.flatMap((file) =>
    importsOf(file)
      .filter((target) => !target.startsWith(SRC))
      .filter((target) => {
        const isClient = relative(SRC, file.path).startsWith(join('command', 'client'))
        return !isClient || !target.startsWith(join(SDK, 'src'))
      })
      .map((target) => `${file.name} imports ${relative(SERVER, target)}`),
  )
  assert.deepEqual(problems, [])
})

test('the folders of outlet never import each other', () => {
  const problems = program.flatMap((file) => {
    const [folder, subfolder] = relative(SRC, file.path).split(sep)
    if (folder !== 'outlet') return []
    return importsOf(file)
      .filter((target) => {
        const [toFolder, toSubfolder] = relative(SRC, target).split(sep)
        return toFolder === 'outlet' && toSubfolder !== subfolder
      })
      .map((target) => `${file.name} imports ${relative(SERVER, target)}`)
  })
  assert.deepEqual(problems, [])
})

test('no file is longer than 500 lines', () => {
  const problems = [...sources, ...tests, ...sdk]
    .map(({ name, text }) => ({ name, lines: text.split('\n').length }))
    .filter(({ lines }) => lines > LINES_MAX)
    .map(({ name, lines }) => `${name}: ${lines} lines`)
  assert.deepEqual(problems, [])
})

test('the only plain JavaScript is the verifier, a single file', () => {
  const files = globSync(
    '{bench,bin,dashboard,docs,examples,sdk/src,sdk/tools,server,tools,verifier}/**/*.{js,cjs,mjs}',
    {
      cwd: join(SERVER, '..'),
      exclude: (name) => /^(node_modules|dist|data|test-results)$/.test(name),
    },
  )
  assert.deepEqual(files, ['verifier/annals-verify.mjs'])
  const text = readFileSync(join(SERVER, '..', 'verifier/annals-verify.mjs'), 'utf8')
  assert(text.split('\n').length <= VERIFIER_LINES_MAX)
})

test('no folder has more than 22 files besides unit tests', () => {
  const files = [
    ...[...program, ...sdkProgram].map(({ path }) => path),
    ...globSync([`${DASHBOARD}/src/**/*.*`, `${SERVER}/test/harness/**/*.*`]),
  ]
  const problems = [...Map.groupBy(files, (path) => dirname(path))]
    .filter(([, { length }]) => length > FOLDER_FILES_MAX)
    .map(([folder, { length }]) => `${relative(SERVER, folder)}: ${length} files`)
  assert.deepEqual(problems, [])
})

/** They escape the text themselves, or print no text of others. */
const PRINTS_ESCAPED =
  /output\/(print|rows)\.ts$|doctor\/report\.ts$|client-output\.ts$|print-(openapi|completion)\.ts$/

const BANNED: readonly { pattern: RegExp; why: string; except?: RegExp }[] = [
  { pattern: /\bconsole\./, why: 'log through the logger' },
  {
    pattern: /\bprocess\.std(out|err)\.write\(/,
    why: 'printLines and the others of command/output/print.ts escape texts of others',
    except: /command\/output\/print\.ts$|\/progress-(line|bar)\.ts$/,
  },
  { pattern: /\bprintEscaped\(/, why: 'printLines escapes the text', except: PRINTS_ESCAPED },
  { pattern: /\bprocess\.exit\(/, why: 'dispose instead', except: /platform\/end-process\.ts$/ },
  {
    pattern: /\bprocess\.env\b/,
    why: 'configuration is an argument',
    except: /main\.ts$|platform\/engine\//,
  },
  { pattern: /\b(TODO|FIXME|XXX|HACK)\b/, why: 'finish it or open an issue' },
  { pattern: /@ts-(ignore|nocheck|expect-error)/, why: 'fix the type' },
  { pattern: /export default/, why: 'named exports only' },
  {
    pattern: /\bDate\.now\(/,
    why: 'durations use the monotonic clock, stored times the clock that is passed in',
    except: /platform\/time\/clock\.ts$|sdk\/src\/client\/connection\.ts$/,
  },
  { pattern: /\bMath\.random\(/, why: 'randomness is an argument or comes from node:crypto' },
  {
    pattern: /\bJSON\.parse\b(?!`)|\.json\(\)/,
    why: 'parseJson never mistakes a key for another one',
    // They parse texts without escapes, or a single string, number or literal. The SDK runs elsewhere.
    except: /platform\/json\/(json-reader|json-scanner|parse-json|strict-json)\.ts$|^\.\.\/sdk\//,
  },
]

test('the program contains no banned calls and no leftover reminders', () => {
  const problems = [...program, ...sdkProgram].flatMap(({ name, text }) =>
    BANNED.filter(({ pattern, except }) => !except?.test(name) && pattern.test(text)).map(
      ({ pattern, why }) => `${name}: ${pattern.source}: ${why}`,
    ),
  )
  assert.deepEqual(problems, [])
})

test('the SDK and the dashboard parse JSON only with parseJson', () => {
  const files = globSync([`${SDK}/src/**/*.ts`, `${DASHBOARD}/src/**/*.{ts,tsx}`])
  const problems = files
    // The script for auditors contains a parser of its own.
    .filter((path) => !/(\/parse-json|\/verify-script|\.test)\.ts$/.test(path))
    // Comments put JSON.parse in backticks, and mention express.json().
    .filter((path) => /(?<!`)JSON\.parse|(?<!express)\.json\(\)/.test(readFileSync(path, 'utf8')))
    .map((path) => relative(SERVER, path))
  assert.deepEqual(problems, [])
})

test('no test sleeps, and none is skipped', () => {
  const sleeping =
    /setTimeout\(|waitForTimeout\(|timers\/promises|\b(test|describe|it)\.(only|skip|todo)\b/
  const problems = [...tests, ...sources, ...sdk]
    .filter(({ name }) => name.endsWith('.test.ts') && !name.endsWith('tidy.test.ts'))
    .filter(({ text }) => sleeping.test(text))
    .map(({ name }) => name)
  assert.deepEqual(problems, [])
})

test('every file of the program is used', () => {
  const used = new Set([...sources, ...tests].flatMap(importsOf))
  const dead = program
    .filter(({ path, name }) => !used.has(path) && name !== 'src/main.ts')
    .map(({ name }) => name)
  assert.deepEqual(dead, [])
})

test('every export is imported somewhere', () => {
  const files = globSync(IMPORTING, { exclude: [SDK_TYPES] }).map((path) => {
    const text = readFileSync(path, 'utf8')
    return { name: relative(SERVER, path), text, words: new Set(text.match(/\w+/g)) }
  })
  const uses = new Map<string, number>()
  for (const word of files.flatMap(({ words }) => [...words])) {
    uses.set(word, (uses.get(word) ?? 0) + 1)
  }
  const unused = files
    .filter(
      ({ name }) => /^(src|\.\.\/(dashboard|sdk)\/src)\//.test(name) && !name.endsWith('.test.ts'),
    )
    .flatMap(({ name, text }) =>
      [...text.matchAll(EXPORTED)]
        .filter(([, exported = '']) => uses.get(exported) === 1)
        .map(([, exported]) => `${name}: ${exported}`),
    )
  assert.deepEqual(unused, [])
})

test('no exported name exists twice in the server', () => {
  const exported = program.flatMap(({ name, text }) =>
    [...text.matchAll(EXPORTED)].map(([, word = '']) => ({ word, name })),
  )
  const twice = [...Map.groupBy(exported, ({ word }) => word).values()]
    .filter((uses) => uses.length > 1)
    .map((uses) => uses.map(({ word, name }) => `${name}: ${word}`).join(', '))
  assert.deepEqual(twice, [])
})

test('SQL stays in stores, migrations and the platform', () => {
  const statement = /\bsql(<[^>]+>)?`|\.(selectFrom|insertInto|updateTable|deleteFrom)\(/
  const problems = program
    .filter(({ name }) => !/-store\.ts$|\/platform\//.test(name))
    .filter(({ text }) => statement.test(text))
    .map(({ name }) => name)
  assert.deepEqual(problems, [])
})

test('every array and string of every request body and query has a limit', async () => {
  const schemas = await readRequestSchemas()
  assert(schemas.length > 100, `only ${schemas.length} schemas were found`)
  const problems = schemas.flatMap(({ route, part, schema }) =>
    unboundedParts(schema).map((problem) => `${route} ${part} ${problem}`),
  )
  assert.deepEqual(problems, [])
})

test('the check finds every kind of missing limit, even inside unions', () => {
  const list = { type: 'array', items: { type: 'string', maxLength: 1 } }
  const wrap = (schema: object) => ({ type: 'object', properties: { a: { anyOf: [schema] } } })
  for (const schema of [
    list,
    { ...list, maxItems: 101, uniqueItems: true },
    { ...list, maxItems: 1, items: { type: 'string' } },
    { type: 'string', format: 'uri' },
    { type: 'string', maxLength: 9, pattern: '(a+)+$' },
    { type: 'object', additionalProperties: { type: 'string', maxLength: 1 } },
    { type: 'object', maxProperties: 9, additionalProperties: { type: 'string' } },
  ]) {
    assert.equal(unboundedParts(wrap(schema)).length, 1, JSON.stringify(schema))
  }
  const named = { type: 'object', additionalProperties: { type: 'string', maxLength: 1 } }
  assert.deepEqual(unboundedParts(wrap({ ...list, maxItems: 100, uniqueItems: true })), [])
  assert.deepEqual(unboundedParts(wrap({ ...named, maxProperties: 10 })), [])
  assert.deepEqual(['^a+a+$', 'a+', '^(a|a)*$', '^a{2,}b*$'].filter(isLinear), [])
})
