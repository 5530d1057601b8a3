import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { createProgram } from '../../src/command-line.ts'
import { OPTIONS } from '../../src/config.ts'
import { StopSignals } from '../../src/platform/stop-signals.ts'
import { SERVE_ROLES } from '../../src/serve-role.ts'
import { ROOT } from '../../tools/package/runtime-packages.ts'

/** What docs/operations.md promises: a stop takes at most this long. */
const STOP_SECONDS_MAX = 10
const UNPRIVILEGED = '65532'
/** The standard variables of the AWS SDK, which docs/configuration.md refers to. */
const CREDENTIALS = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']
const CHART = 'deploy/helm/annals'

type Probe = { httpGet: { path: string; port: string } }
type Container = {
  args: string[]
  ports?: { name: string; containerPort: number }[]
  startupProbe?: Probe
  livenessProbe?: Probe
  readinessProbe?: Probe
  lifecycle?: { preStop: { sleep: { seconds: number } } }
}
type Pod = { terminationGracePeriodSeconds: number; containers: Container[] }
type Resource = { kind: string; spec: { template: { spec: Pod } } }
type Service = {
  image: string
  user: string
  read_only: boolean
  cap_drop: string[]
  security_opt: string[]
  command?: string[]
  ports?: string[]
  stop_grace_period?: string
}

const read = (name: string) => readFileSync(join(ROOT, name), 'utf8')
const files = globSync('deploy/**/*', { cwd: ROOT, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
const { version }: { version: string } = JSON.parse(read('server/package.json'))
const dockerfile = read('deploy/docker/Dockerfile')
const { services }: { services: Record<string, Service> } = parse(
  read('deploy/compose/compose.yaml'),
  { merge: true },
)
const unit = read('deploy/systemd/annals.service')
const helpers = read(`${CHART}/templates/_helpers.tpl`)
const values: Record<string, unknown> = parse(read(`${CHART}/values.yaml`))
const templates = globSync(`${CHART}/templates/*.yaml`, { cwd: ROOT }).map((name) => ({
  name: basename(name),
  text: read(name),
}))
const resources = templates.flatMap(({ text }) => parseTemplate(text))
const pods = resources
  .filter(({ kind }) => kind === 'Deployment' || kind === 'Job')
  .map(({ spec }) => spec.template.spec)
const containers = pods.flatMap((pod) => pod.containers)

/** A template without its directives is YAML that lacks what they insert. */
function parseTemplate(text: string): Resource[] {
  const plain = text.replaceAll(/^ *\{\{.*\}\} *\n/gm, '').replaceAll(/\{\{.*?\}\}/g, 'x')
  return parseAllDocuments(plain).map((document) => {
    assert.deepEqual(document.errors, [])
    return document.toJS()
  })
}

/** `20s` of Compose and systemd. */
function secondsOf(duration: string | undefined): number {
  return Number(/^(\d+)s$/.exec(duration ?? '')?.[1])
}

function settingOf(name: string): string | undefined {
  return new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1]
}

test('every image has a version, and ours has that of the server', () => {
  const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image)
  const images = [...bases, ...Object.values(services).map(({ image }) => image)]
  assert.deepEqual(
    images.filter((image) => image !== 'scratch' && !/^[\w./-]+:\w*[\d.]\S+$/.test(image ?? '')),
    [],
  )
  for (const name of files) assert.doesNotMatch(read(name), /:latest\b/, name)
  assert.equal(services.annals?.image, `annals:${version}`)
  const chart: { version: string; appVersion: string } = parse(read(`${CHART}/Chart.yaml`))
  assert.deepEqual([chart.version, chart.appVersion], [version, version])
  for (const name of ['docs/deploy.md', 'deploy/docker/Dockerfile']) {
    const named = read(name).matchAll(/\bannals[-:](\d+\.\d+\.\d+)/g)
    assert.deepEqual(new Set(Array.from(named, ([, release]) => release)), new Set([version]), name)
  }
})

test('nothing runs with privileges, and root file systems are read-only', () => {
  const user = `${UNPRIVILEGED}:${UNPRIVILEGED}`
  assert.equal(/^USER (.*)$/m.exec(dockerfile)?.[1], user)
  assert.equal(services.annals?.user, user)
  for (const [name, service] of Object.entries(services)) {
    // Root without capabilities can't do more than the owner of its volume.
    if (name !== 'storage') assert.match(service.user, /^[1-9]\d*:[1-9]/, name)
    assert.equal(service.read_only, true, name)
    assert.deepEqual(service.cap_drop, ['ALL'], name)
    assert.deepEqual(service.security_opt, ['no-new-privileges:true'], name)
  }
  for (const setting of [
    'runAsNonRoot: true',
    `runAsUser: ${UNPRIVILEGED}`,
    'type: RuntimeDefault',
    'allowPrivilegeEscalation: false',
    'readOnlyRootFilesystem: true',
    'drop: [ALL]',
  ]) {
    assert(helpers.includes(setting), setting)
  }
  for (const { name, text } of templates.filter(({ text }) => text.includes('containers:'))) {
    assert.match(text, /include "annals\.podSecurity"/, name)
    assert.match(text, /include "annals\.containerSecurity"/, name)
    assert.match(text, /automountServiceAccountToken: false/, name)
  }
  assert.equal(settingOf('User'), 'annals')
  assert.deepEqual(
    [settingOf('NoNewPrivileges'), settingOf('ProtectSystem'), settingOf('CapabilityBoundingSet')],
    ['yes', 'strict', ''],
  )
})

test('every environment variable is one of the service', () => {
  const known = new Set([
    ...Object.values(OPTIONS).map((option) => option.variable),
    ...CREDENTIALS,
  ])
  const unknown = [...files, 'docs/deploy.md'].flatMap((name) =>
    [...read(name).matchAll(/\b(?:ANNALS|AWS)_[A-Z0-9_]+/g)]
      .map(([variable]) => variable)
      .filter((variable) => !known.has(variable))
      .map((variable) => `${name}: ${variable}`),
  )
  assert.deepEqual(unknown, [])
})

test('every command and role exists', () => {
  const program = createProgram({ env: {}, stopSignals: new StopSignals() })
  const command = /^CMD \["(.*)"\]$/m.exec(dockerfile)?.[1]
  const started = settingOf('ExecStart')?.split(' ') ?? []
  assert.match(started[0] ?? '', /\/bin\/annals$/)
  const calls = [
    [command ?? ''],
    services.annals?.command ?? [],
    started.slice(1),
    ...containers.map(({ args }) => args),
  ]
  assert.equal(calls.length, 6)
  for (const [name, ...options] of calls) {
    assert(
      program.commands.some((known) => known.name() === name),
      name,
    )
    const [option, role] = options
    if (option === undefined) continue
    assert.equal(option, '--role')
    assert(
      SERVE_ROLES.some((known) => known === role),
      role,
    )
  }
})

test('every port is one that the service listens on', () => {
  const port = OPTIONS.port.fallback
  assert.equal(/^EXPOSE (.*)$/m.exec(dockerfile)?.[1], port)
  assert.deepEqual(services.annals?.ports, [`127.0.0.1:${port}:${port}`])
  const set = (name: string) => new RegExp(`name: ${name}\\n  value: '(\\d+)'`).exec(helpers)?.[1]
  const listening = { http: set('ANNALS_PORT'), metrics: set('ANNALS_METRICS_PORT') }
  for (const { ports = [] } of containers) {
    for (const item of ports) {
      assert.equal(String(item.containerPort), new Map(Object.entries(listening)).get(item.name))
    }
  }
  const policy = templates.find(({ name }) => name === 'network-policy.yaml')?.text ?? ''
  assert.deepEqual(
    [...policy.matchAll(/- port: (\d+)/g)].map(([, allowed]) => allowed),
    [listening.http, listening.metrics],
  )
  const names = templates.flatMap(({ text }) => [
    ...text.matchAll(/(?:targetPort|- port): ([a-z]+)/g),
  ])
  assert.deepEqual(new Set(names.map(([, name]) => name)), new Set(['http', 'metrics']))
})

test('probes restart on /health, route by /ready, and use a port of their container', () => {
  const { paths }: { paths: object } = JSON.parse(read('openapi/v1.json'))
  assert('/health' in paths && '/ready' in paths)
  const check = new RegExp(`http://127\\.0\\.0\\.1:${OPTIONS.port.fallback}/health"`)
  assert.match(dockerfile, check)
  const serving = containers.filter(({ args }) => args[0] === 'serve')
  assert.equal(serving.length, 2)
  for (const { args, ports = [], startupProbe, livenessProbe, readinessProbe } of serving) {
    // A worker has no API. Without a service, it needs no readiness.
    const isWorker = args.includes('worker')
    const live = isWorker
      ? { path: '/metrics', port: 'metrics' }
      : { path: '/health', port: 'http' }
    assert.deepEqual([startupProbe?.httpGet, livenessProbe?.httpGet], [live, live])
    const ready = isWorker ? undefined : { path: '/ready', port: 'http' }
    assert.deepEqual(readinessProbe?.httpGet, ready)
    assert(ports.some(({ name }) => name === live.port))
  }
})

test('everything that stops the service waits until it has stopped', () => {
  const promise = `wait at least ${STOP_SECONDS_MAX} s`
  assert(read('docs/operations.md').replaceAll('\n', ' ').includes(promise), promise)
  const waits = [
    secondsOf(settingOf('TimeoutStopSec')),
    secondsOf(services.annals?.stop_grace_period),
    ...pods.map(
      ({ terminationGracePeriodSeconds, containers: [container] }) =>
        terminationGracePeriodSeconds - (container?.lifecycle?.preStop.sleep.seconds ?? 0),
    ),
  ]
  assert.equal(waits.length, 5)
  assert(
    waits.every((seconds) => seconds >= STOP_SECONDS_MAX),
    String(waits),
  )
  // Otherwise systemd would also signal PostgreSQL, which the service stops itself.
  assert.equal(settingOf('KillMode'), 'mixed')
})

test('the chart has every resource, and its templates use only what exists', () => {
  const kinds = resources.map(({ kind }) => kind).toSorted()
  assert.deepEqual(kinds, [
    'Deployment',
    'Deployment',
    'Job',
    'NetworkPolicy',
    'PodDisruptionBudget',
    'PodDisruptionBudget',
    'Service',
    'Service',
    'ServiceAccount',
    'ServiceMonitor',
  ])
  const defined = [...helpers.matchAll(/define "([^"]+)"/g)].map(([, name]) => name)
  for (const { name, text } of [...templates, { name: '_helpers.tpl', text: helpers }]) {
    for (const [, helper] of text.matchAll(/include "([^"]+)"/g)) {
      assert(defined.includes(helper), `${name}: ${helper}`)
    }
    for (const [, path = ''] of text.matchAll(/\.Values\.([\w.]+)/g)) {
      const value = path
        .split('.')
        .reduce<unknown>(
          (parent, key) =>
            typeof parent === 'object' && parent !== null
              ? new Map(Object.entries(parent)).get(key)
              : undefined,
          values,
        )
      assert.notEqual(value, undefined, `${name}: .Values.${path}`)
    }
    const opened = text.match(/\{\{-? (if|range|define)\b/g)?.length ?? 0
    assert.equal(text.match(/\{\{-? end\b/g)?.length ?? 0, opened, name)
  }
})
