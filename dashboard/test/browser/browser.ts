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

/**
 * A real Chromium: the one that `CHROMIUM_PATH` names, else the system's, else the one that npm brings.
 * Null when none starts: whoever runs the tests by hand is told so, a machine that gates fails.
 */
export async function startBrowser(): Promise<TestBrowser | null> {
  const tried: string[] = []
  for (const open of [openNamed, openSystem, openPackaged]) {
    try {
      const opened = await open()
      if (opened) return opened
    } catch (error) {
      tried.push(error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : String(error))
    }
  }
  const sentence = `no Chromium starts here (${tried.join('; ') || 'none was found'}); set CHROMIUM_PATH`
  if (process.env.CI) throw new Error(sentence)
  process.stderr.write(`skipped: ${sentence}\n`)
  return null
}

async function openNamed(): Promise<TestBrowser | null> {
  const path = process.env.CHROMIUM_PATH
  return path ? await launch(path) : null
}

async function openSystem(): Promise<TestBrowser | null> {
  const path = SYSTEM_PATHS.find((candidate) => existsSync(candidate))
  return path === undefined ? null : await launch(path)
}

/** It unpacks itself into the temporary folder and takes whatever lies there, so it gets one of its own. */
async function openPackaged(): Promise<TestBrowser | null> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return null
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'annals-chromium-')))
  const usual = process.env.TMPDIR
  process.env.TMPDIR = folder.path
  // Makes it unpack the libraries that it needs as well.
  process.env.AWS_LAMBDA_JS_RUNTIME ??= 'nodejs24.x'
  const { default: packaged } = await import('@sparticuz/chromium')
  const opened = stack.use(await launch(await packaged.executablePath()))
  if (usual === undefined) delete process.env.TMPDIR
  else process.env.TMPDIR = usual
  const kept = stack.move()
  return { ...opened, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

async function launch(executablePath: string): Promise<TestBrowser> {
  const browser = await chromium.launch({ executablePath, args: ARGUMENTS })
  return { browser, from: executablePath, [Symbol.asyncDispose]: () => browser.close() }
}
