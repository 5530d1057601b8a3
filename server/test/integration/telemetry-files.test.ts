import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { startTestApp } from '../harness/app/start-app.ts'
import { METRICS_ENV, scrapeMetrics, type Scrape, valueOf } from '../harness/telemetry/scrape.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { sendEvents } from '../harness/webhook/deliveries.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'
import { ANY_DESTINATION, makeWebhook } from '../harness/webhook/webhooks.ts'

const ROOT = join(import.meta.dirname, '../../..')
const FOLDER = join(ROOT, 'deploy/telemetry')
const DOCS = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8')
const ALERTS = readFileSync(join(FOLDER, 'alerts.yml'), 'utf8')
/** Prometheus and Grafana add these labels themselves. */
const FOREIGN_LABELS = ['instance', 'job', 'le']
/** Samples of a histogram have these endings. */
const SERIES_ENDING = /_(bucket|sum|count)$/

type Panel = {
  id: number
  type: string
  title: string
  fieldConfig?: { defaults: { unit?: string } }
  targets?: { expr: string }[]
}
const dashboard: { panels: Panel[] } = JSON.parse(
  readFileSync(join(FOLDER, 'dashboard.json'), 'utf8'),
)
const charts = dashboard.panels.filter(({ type }) => type !== 'row')

/** What the dashboard queries, with the variables of Grafana replaced. */
const queries = charts.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({
    title,
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
  })),
)
const alerts = ALERTS.split(/^ +- alert: /m).slice(1)

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
let scrape: Scrape
/** The labels of each metric in the docs. */
const documented = new Map<string, string[]>()

before(async () => {
  const env = { ...METRICS_ENV, ...ANY_DESTINATION }
  const annals = stack.use(await startTestApp({ env }))
  const receiver = stack.use(await startReceiver())
  const tenant = await annals.createCompany()
  await makeWebhook(annals, tenant, { url: receiver.url })
  await sendEvents(annals, tenant.workspaceKey, 3)
  await annals.call('POST', '/v1/events', { key: tenant.workspaceKey, body: {} })
  await annals.call('GET', '/v1/events', { key: 'unknown' })
  await receiver.waitFor(3)
  scrape = await eventually(async () => {
    const found = await scrapeMetrics(annals)
    assert.equal(valueOf(found, 'annals_delivery_attempt_total', { result: 'accepted' }), 3)
    return found
  })
  for (const [, names = '', labels = ''] of DOCS.matchAll(/^\| (`annals_[^|]*)\|([^|]*)\|/gm)) {
    const listed = Array.from(labels.matchAll(/`(\w+)`/g), ([, label = '']) => label)
    for (const [, name = ''] of names.matchAll(/`(annals_[a-z_*]+)`/g)) documented.set(name, listed)
  }
})

/** The metric of a series: without the ending that a histogram adds. */
function metricOf(series: string): string {
  const histogram = series.replace(SERIES_ENDING, '')
  return scrape.types.get(histogram) === 'histogram' ? histogram : series
}

test('docs/operations.md lists every exported metric with its labels, and no others', () => {
  const isProcess = (name: string) => /^annals_(process|nodejs)_/.test(name)
  const exported = [...scrape.types.keys()].filter((name) => !isProcess(name))
  const listed = [...documented.keys()].filter((name) => !isProcess(name))
  assert.deepEqual(listed.toSorted(), exported.toSorted())
  for (const { name, labels } of scrape.samples) {
    const metric = metricOf(name)
    if (isProcess(metric)) continue
    const own = Object.keys(labels).filter((label) => !FOREIGN_LABELS.includes(label))
    assert.deepEqual(own.toSorted(), documented.get(metric)?.toSorted(), metric)
  }
})

/** This node has no witness, no replica and no embedded engine, and its archiver first runs after an hour. */
const LACKED = [
  'annals_checkpoint_send_total',
  'annals_checkpoint_uncosigned_count',
  'annals_disk_free_bytes',
  'annals_replica_read_total',
  'annals_replica_down_count',
  'annals_exception_uncaught_total',
  'annals_archive_complete_timestamp_seconds',
  'annals_archive_hold_events',
]

test('a node has a value for every metric that its set-up can have', () => {
  const measured = new Set(scrape.samples.map(({ name }) => metricOf(name)))
  const missing = [...documented.keys()].filter(
    (name) => !name.includes('*') && !measured.has(name),
  )
  assert.deepEqual(missing.toSorted(), LACKED.toSorted())
})

test('the dashboard and the alerts use only metrics and labels that the service exports', () => {
  const texts = [...queries.map(({ expr }) => expr), ...alerts.map(expressionOf)]
  for (const text of texts) {
    const series = Array.from(text.matchAll(/\bannals_\w+/g), ([name]) => name)
    const labels: string[] = []
    for (const name of series) {
      const metric = metricOf(name)
      assert(scrape.types.has(metric), `${name} is not exported: ${text}`)
      labels.push(...(documented.get(metric) ?? []))
    }
    for (const label of labelsIn(text)) {
      const isKnown = labels.includes(label) || FOREIGN_LABELS.includes(label)
      assert(isKnown, `no label ${label}: ${text}`)
    }
  }
  assert(texts.length > 50)
})

/** Labels in matchers, and those that a sum keeps. */
function labelsIn(text: string): string[] {
  const matched = Array.from(text.matchAll(/(\w+)(?:=|!=|=~|!~)"/g), ([, label = '']) => label)
  const kept = Array.from(text.matchAll(/\bby \(([^)]*)\)/g), ([, list = '']) => list.split(/, */))
  return [...matched, ...kept.flat()]
}

/** The expression of an alert, on one line or folded over several. */
function expressionOf(alert: string): string {
  const [, expression = ''] = /expr: ([\s\S]*?)\n +for: /.exec(alert) ?? []
  assert(expression, alert)
  return expression
}

test('every metric of the service itself is in the dashboard or in an alert', () => {
  const text = [...queries.map(({ expr }) => expr), ...alerts.map(expressionOf)].join('\n')
  const used = new Set(Array.from(text.matchAll(/\bannals_\w+/g), ([name]) => metricOf(name)))
  const unused = [...documented.keys()].filter((name) => !name.includes('*') && !used.has(name))
  assert.deepEqual(unused, [])
})

test('every chart has its own id, a unit and a query', () => {
  const ids = dashboard.panels.map(({ id }) => id)
  assert.equal(new Set(ids).size, ids.length)
  for (const { title, fieldConfig, targets = [] } of charts) {
    assert(fieldConfig?.defaults.unit && targets.length > 0, title)
  }
})

test('every alert says how urgent it is, what happened and what to do, and where to read on', () => {
  const anchors = new Set(
    Array.from(DOCS.matchAll(/^#+ (.+)$/gm), ([, title = '']) =>
      title
        .toLowerCase()
        .replaceAll(/[^a-z -]/g, '')
        .replaceAll(' ', '-'),
    ),
  )
  for (const alert of alerts) {
    assert.match(alert, /^Annals\w+\n/)
    assert.match(alert, /\n +for: \d+m\n/, alert)
    assert.match(alert, /\n +severity: (critical|warning|info)\n/, alert)
    assert.match(alert, /\n +summary: \S/, alert)
    assert.match(alert, /\n +description: \S/, alert)
    const [, anchor = ''] = /\n +runbook: docs\/operations\.md#(\S+)/.exec(alert) ?? []
    assert(anchors.has(anchor), `no section ${anchor}`)
  }
  assert(alerts.length > 15)
})

const run = promisify(execFile)
const hasPromtool = spawnSync('promtool', ['--version']).status === 0
const skip = hasPromtool
  ? false
  : 'promtool is not installed. It is in the Debian package prometheus.'

test('Prometheus accepts the alert rules, and they fire when they should', { skip }, async () => {
  const checked = await run('promtool', ['check', 'rules', 'alerts.yml'], { cwd: FOLDER })
  assert.match(checked.stdout, new RegExp(`SUCCESS: ${alerts.length} rules`))
  const tested = await run('promtool', ['test', 'rules', 'alerts.test.yml'], { cwd: FOLDER })
  assert.match(tested.stdout, /SUCCESS/)
})

test('Prometheus can parse every query of the dashboard', { skip }, async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'annals-dashboard-'))
  const rules = queries.map(({ expr }, index) => ({ record: `query:${index}`, expr }))
  const path = join(folder.path, 'rules.yml')
  // JSON is YAML.
  await writeFile(path, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
  const { stdout } = await run('promtool', ['check', 'rules', path])
  assert.match(stdout, new RegExp(`SUCCESS: ${queries.length} rules`))
})
