import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { LogDestination } from '../../src/platform/log-destination.ts'
import { AnnalsProcess } from '../harness/app/annals-process.ts'
import { IS_ROOT } from '../harness/database/engine.ts'
import { eventually, oneOfManyWithin } from '../harness/timing/eventually.ts'
import { freePort } from '../harness/database/pgbouncer.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'
import { terminalSkipReason, Terminal } from '../harness/app/terminal.ts'

/** Not a guarantee either. A service that waits for its log never responds. */
const RESPONSE_MS_MAX = 30_000
const STOP_MS_MAX = 10_000
const IDLE_STOP_MS_MAX = 2_000
/** Not a guarantee, only how long a start can take on a busy machine. */
const START_MS_MAX = 120_000
/** One line per request. A pipe holds 64 kB of them. */
const ROUNDS_MAX = 40

const folder = mkdtempSync(join(tmpdir(), 'annals-log-'))
const database = await cloneDatabase()
after(async () => {
  await database[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** A named pipe whose reader reads only when the test says so. */
class Fifo implements Disposable {
  readonly path: string
  readonly #fd: number

  constructor(name: string) {
    this.path = join(folder, name)
    execFileSync('mkfifo', [this.path])
    this.#fd = openSync(this.path, constants.O_RDONLY | constants.O_NONBLOCK)
  }

  openWriter(): number {
    return openSync(this.path, constants.O_WRONLY | constants.O_NONBLOCK)
  }

  /** Everything in the pipe now. */
  read(): string {
    const chunks: Buffer[] = []
    const chunk = Buffer.alloc(65_536)
    for (;;) {
      try {
        const bytes = readSync(this.#fd, chunk)
        if (bytes === 0) break
        chunks.push(Buffer.from(chunk.subarray(0, bytes)))
      } catch {
        break
      }
    }
    return Buffer.concat(chunks).toString()
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd)
  }
}

const noticeOf = (lines: number) => `dropped ${lines}\n`

test('drops lines while a pipe is full, and finishes the line that was cut before the next one', () => {
  using fifo = new Fifo('unit')
  const destination = new LogDestination(() => fifo.openWriter(), { noticeOf })
  // Larger than what a pipe accepts at once, so that one is cut off.
  const lines = Array.from({ length: 20 }, (_, nth) => `${nth} ${'x'.repeat(10_000)}\n`)
  for (const line of lines) destination.write(line)
  const { dropped } = destination
  assert(dropped > 0 && dropped < lines.length, String(dropped))

  const first = fifo.read()
  destination.write('works again\n')
  assert.equal(
    first + fifo.read(),
    `${lines.slice(0, -dropped).join('')}dropped ${dropped}\nworks again\n`,
  )
  destination.write('and again\n')
  assert.equal(fifo.read(), 'and again\n')
  assert.equal(destination.dropped, dropped)
})

test('prints text that must not be lost as soon as a full pipe has room', async () => {
  using fifo = new Fifo('print')
  const destination = new LogDestination(() => fifo.openWriter(), { noticeOf })
  while (destination.dropped === 0) destination.write(`${'x'.repeat(10_000)}\n`)
  destination.print('the key\n')
  destination.print('a warning\n')
  let printed = ''
  await eventually(() => {
    printed += fifo.read()
    assert.match(printed, /x\nthe key\na warning\n$/)
  })
  assert.equal(destination.dropped, 1)
  destination.write('works again\n')
  assert.equal(fifo.read(), 'dropped 1\nworks again\n')
})

test('drops lines while the disk is full, and while nothing reads the pipe any more', () => {
  const full = new LogDestination(() => openSync('/dev/full', 'w'), { noticeOf })
  for (let nth = 0; nth < 3; nth += 1) full.write('line\n')
  assert.equal(full.dropped, 3)

  const fifo = new Fifo('closed')
  const fd = fifo.openWriter()
  fifo[Symbol.dispose]()
  const broken = new LogDestination(() => fd, { noticeOf })
  broken.write('line\n')
  assert.equal(broken.dropped, 1)
  closeSync(fd)
})

const env = {
  ANNALS_DATABASE_URL: database.url,
  ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  ANNALS_PORT: '0',
  ANNALS_METRICS_PORT: '0',
}

/** `exec` keeps the process id, so that signals reach the service. */
function serveInto(path: string, more: Record<string, string> = {}): AnnalsProcess {
  const shell = ['sh', '-c', `exec "$@" >'${path}'`, 'sh']
  return new AnnalsProcess(['serve', '--role', 'api'], { ...env, ...more }, shell)
}

async function fetchText(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(RESPONSE_MS_MAX) })
  return await response.text()
}

async function assertStops(service: AnnalsProcess): Promise<void> {
  const startedAtMs = performance.now()
  const late = AbortSignal.timeout(STOP_MS_MAX + 1_000)
  late.addEventListener('abort', () => service.signal('SIGKILL'))
  service.signal('SIGTERM')
  const { code, stderr } = await service.exited
  const durationMs = Math.round(performance.now() - startedAtMs)
  assert.equal(code, 0, `exit code ${code} after ${durationMs} ms: ${stderr}`)
  assert(durationMs < STOP_MS_MAX, `stopping took ${durationMs} ms`)
}

/** Sends requests, each of which logs a line, until the output is full. Every one gets a response. */
async function requestUntilDropped({ url, metricsUrl }: { url: string; metricsUrl: string }) {
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    await Promise.all(Array.from({ length: 50 }, () => fetchText(`${url}/health`)))
    const metrics = await fetchText(`${metricsUrl}/metrics`)
    if (/^annals_log_drop_total [1-9]/m.test(metrics)) return
  }
  assert.fail('no line was dropped')
}

test('responds and stops when the reader of its log stalls', async () => {
  using fifo = new Fifo('service')
  const service = serveInto(fifo.path, { ANNALS_LOG_LEVEL: 'debug' })
  await using _killed = { [Symbol.asyncDispose]: async () => service.signal('SIGKILL') }
  let printed = ''
  const { url, metricsUrl } = await eventually(
    () => {
      printed += fifo.read()
      const [line] = /\{.*"event":"service\.started".*\}/.exec(printed) ?? []
      assert(line, printed)
      return JSON.parse(line)
    },
    { timeoutMs: START_MS_MAX },
  )

  await requestUntilDropped({ url, metricsUrl })
  await assertStops(service)
})

test(
  'responds, and stops within 2 s, when its terminal is paused',
  { skip: terminalSkipReason() },
  async () => {
    const debugEnv = { ...env, ANNALS_LOG_LEVEL: 'debug' }
    await oneOfManyWithin(IDLE_STOP_MS_MAX, async () => {
      await using terminal = new Terminal(['serve', '--role', 'api'], debugEnv)
      const [, url = '', metricsUrl = ''] = await eventually(() => {
        assert.match(terminal.screen, /Annals is running at http:.*API reference: http:/)
        const found = /service\.started .*\burl=(\S+) metricsUrl=(\S+)/.exec(terminal.screen)
        assert(found, terminal.screen)
        return found
      })
      terminal.pause()
      await requestUntilDropped({ url, metricsUrl })

      const startedAtMs = performance.now()
      const late = AbortSignal.timeout(STOP_MS_MAX)
      late.addEventListener('abort', () => terminal.signal('SIGKILL'))
      terminal.signal('SIGTERM')
      assert.equal(await terminal.exited, 0)
      return performance.now() - startedAtMs
    })
  },
)

test(
  "writes to the terminal that the output was redirected to, even if only the session's own can be opened",
  { skip: terminalSkipReason() || (!IS_ROOT && 'needs root to change the user') },
  () => {
    // Another user can't open either terminal by its file, but can open its session's as /dev/tty.
    const source = `
      import { writeSync } from 'node:fs'
      import { openNonBlocking } from '${import.meta.resolve('../../src/platform/log-destination.ts')}'
      const fd = openNonBlocking(1)
      writeSync(fd, 'opened again: ' + (fd !== 1))`
    const program = join(folder, 'print.ts')
    writeFileSync(program, source)
    chmodSync(folder, 0o755)
    // Without the options of the test run, whose files only root can read.
    const node = `env -u NODE_OPTIONS '${process.execPath}'`
    const asNobody = `setpriv --reuid=65534 --clear-groups ${node} '${program}'`
    const own = join(folder, 'own-terminal')
    const inOther = `script -q -e -c "${asNobody} >$(tty)" '${own}' >/dev/null`
    const inTerminal = (command: string, log: string) =>
      execFileSync('script', ['-q', '-e', '-c', command, log], { input: '', encoding: 'utf8' })
    assert.match(inTerminal(inOther, '/dev/null'), /opened again: false/)
    assert.doesNotMatch(readFileSync(own, 'utf8'), /opened again/)
    // Redirected to nowhere else, the same user's output goes to the session's terminal.
    assert.match(inTerminal(asNobody, '/dev/null'), /opened again: true/)
  },
)

test('starts, serves and stops when the disk of its log is full', async () => {
  const port = await freePort()
  const service = serveInto('/dev/full', { ANNALS_PORT: String(port) })
  await using _killed = { [Symbol.asyncDispose]: async () => service.signal('SIGKILL') }
  const isReady = async () => {
    assert.match(await fetchText(`http://127.0.0.1:${port}/ready`), /true/)
  }
  await eventually(isReady, { timeoutMs: START_MS_MAX })
  await assertStops(service)
})
