import { existsSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium } from '@playwright/test'

const SYSTEM_PATHS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]
/** No switch here turns a protection of the pages off; the sandbox is the system's, and root has none. */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-dev-shm-usage',
  '--disable-gpu',
  '--no-first-run',
  // Nothing but this machine has a name: whatever a page or the browser itself wants, it stays here.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
]

export type TestBrowser = AsyncDisposable & { browser: Browser; from: string }

/** An executable, and the folder it was unpacked into. */
type Chromium = AsyncDisposable & { path: string }

/**
 * A real Chromium: the one that all files of a test run share, or one of its own. Null if none starts:
 * by hand the tests are skipped, and with `CI` set they fail.
 */
export async function startBrowser(): Promise<TestBrowser | null> {
  const { TEST_BROWSER: shared } = process.env
  if (shared === undefined) return await startOwn()
  if (shared === '') return null
  const browser = await chromium.connect(shared)
  return { browser, from: shared, [Symbol.asyncDispose]: () => browser.close() }
}

/** For all files of a test run, which find its address in `TEST_BROWSER`. */
export async function startSharedBrowser(): Promise<(AsyncDisposable & { url: string }) | null> {
  const started = await startAny((executablePath) =>
    chromium.launchServer({ executablePath, args: ARGUMENTS, host: '127.0.0.1' }),
  )
  if (!started) return null
  const { opened, stack } = started
  return { url: opened.wsEndpoint(), [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

async function startOwn(): Promise<TestBrowser | null> {
  const started = await startAny((executablePath) =>
    chromium.launch({ executablePath, args: ARGUMENTS }),
  )
  if (!started) return null
  const { opened, path, stack } = started
  return { browser: opened, from: path, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

/** The first that starts: the one that `CHROMIUM_PATH` names, the system's, the one that npm brings. */
async function startAny<T extends { close: () => Promise<void> }>(
  start: (path: string) => Promise<T>,
): Promise<{ opened: T; path: string; stack: AsyncDisposableStack } | null> {
  const tried: string[] = []
  for (const find of [findNamed, findSystem, unpackOwn]) {
    try {
      await using stack = new AsyncDisposableStack()
      const found = await find()
      if (!found) continue
      stack.use(found)
      const opened = await start(found.path)
      stack.defer(() => opened.close())
      return { opened, path: found.path, stack: stack.move() }
    } catch (error) {
      tried.push(error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : String(error))
    }
  }
  const sentence = `no Chromium starts here (${tried.join('; ') || 'none was found'}); set CHROMIUM_PATH`
  if (process.env.CI) throw new Error(sentence)
  process.stderr.write(`skipped: ${sentence}\n`)
  return null
}

async function findNamed(): Promise<Chromium | null> {
  return installedAt(process.env.CHROMIUM_PATH)
}

async function findSystem(): Promise<Chromium | null> {
  return installedAt(SYSTEM_PATHS.find((candidate) => existsSync(candidate)))
}

function installedAt(path: string | undefined): Chromium | null {
  return path ? { path, [Symbol.asyncDispose]: async () => {} } : null
}

/** It unpacks itself into the temporary folder and uses whatever is there, so it gets one of its own. */
async function unpackOwn(): Promise<Chromium | null> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return null
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'annals-chromium-')))
  const usual = process.env.TMPDIR
  process.env.TMPDIR = folder.path
  // Makes it unpack the libraries that it needs as well.
  process.env.AWS_LAMBDA_JS_RUNTIME ??= 'nodejs24.x'
  const { default: packaged } = await import('@sparticuz/chromium')
  const path = await packaged.executablePath()
  if (usual === undefined) delete process.env.TMPDIR
  else process.env.TMPDIR = usual
  const kept = stack.move()
  return { path, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}
