import { existsSync } from 'node:fs'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium } from '@playwright/test'

/** The first one has no windows of its own, and takes a third less CPU time. */
const SYSTEM_PATHS = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]
/** None of these disables a protection of the pages. Chromium's sandbox doesn't work as root. */
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-dev-shm-usage',
  '--disable-gpu',
  '--no-first-run',
  // Resolves no host but this machine, so that neither the pages nor the browser can reach the network.
  '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
]

export type TestBrowser = AsyncDisposable & { browser: Browser; from: string }

/** An executable, and the folder it was unpacked to. */
type Chromium = AsyncDisposable & { path: string }

/**
 * A real Chromium: the one that all test files share, or a separate one. Null if none starts: the tests
 * are then skipped, or fail if `CI` is set.
 */
export async function startBrowser(): Promise<TestBrowser | null> {
  const { TEST_BROWSER: shared } = process.env
  if (shared === undefined) return await startOwn()
  if (shared === '') return null
  const browser = await chromium.connect(shared)
  return { browser, from: shared, [Symbol.asyncDispose]: () => browser.close() }
}

/** Starts the browser that all test files share. They find its address in `TEST_BROWSER`. */
export async function startSharedBrowser(): Promise<(AsyncDisposable & { url: string }) | null> {
  const started = await startAnyBrowser((executablePath) =>
    chromium.launchServer({ executablePath, args: ARGUMENTS, host: '127.0.0.1' }),
  )
  if (!started) return null
  const { opened, stack } = started
  return { url: opened.wsEndpoint(), [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

async function startOwn(): Promise<TestBrowser | null> {
  const started = await startAnyBrowser((executablePath) =>
    chromium.launch({ executablePath, args: ARGUMENTS }),
  )
  if (!started) return null
  const { opened, path, stack } = started
  return { browser: opened, from: path, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

/** Uses the first Chromium that starts: `CHROMIUM_PATH`, then the system's, then the one from npm. */
async function startAnyBrowser<T extends { close: () => Promise<void> }>(
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

/**
 * The package unpacks to the temporary folder and reuses what it finds there, so it gets a separate one.
 */
async function unpackOwn(): Promise<Chromium | null> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return null
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'annals-chromium-')))
  const usual = process.env.TMPDIR
  process.env.TMPDIR = folder.path
  // Makes the package unpack the libraries that it needs as well.
  process.env.AWS_LAMBDA_JS_RUNTIME ??= 'nodejs24.x'
  const { default: packaged } = await import('@sparticuz/chromium')
  const path = await packaged.executablePath()
  if (usual === undefined) delete process.env.TMPDIR
  else process.env.TMPDIR = usual
  process.env.FONTCONFIG_FILE = await listFonts(folder.path)
  const kept = stack.move()
  return { path, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

/** The package's own list names only fixed folders, and Chromium crashes if it finds no font at all. */
async function listFonts(folder: string): Promise<string> {
  const file = join(folder, 'fonts.conf')
  const folders = `<dir>${folder}/fonts</dir><cachedir>${folder}/font-cache</cachedir>`
  await writeFile(file, `<?xml version="1.0"?>\n<fontconfig>${folders}</fontconfig>\n`)
  return file
}
