import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
} from '@playwright/test'
import type { Member } from '../../../server/test/harness/dashboard.ts'

/** A page of ours answers within this on a machine that has other things to do as well. */
export const PATIENCE_MS = 20_000
export const DESK = { width: 1_280, height: 800 }

export type Visitor = {
  /** Without one nobody is signed in. */
  member?: Pick<Member, 'cookie'>
  context?: BrowserContextOptions
  /** The window of an earlier test of the file with the same member, which has loaded the pages. */
  isShared?: true
}

/** Somebody's browser window, of which everything that it complains about is kept. */
export type Visit = {
  page: Page
  context: BrowserContext
  /** Foreign hosts, messages of the console, errors that nobody caught. */
  complaints: string[]
}

export async function openVisit(
  browser: Browser,
  url: string,
  { member, context: requests }: Visitor,
): Promise<Visit> {
  const context = await browser.newContext({
    baseURL: url,
    viewport: DESK,
    // The same wherever the tests run, and a zone that is not the service's.
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    // What slides in is there at once.
    reducedMotion: 'reduce',
    ...requests,
  })
  context.setDefaultTimeout(PATIENCE_MS)
  if (member) await context.addCookies([cookieOf(member, url)])
  const complaints: string[] = []
  context.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url())
    const isOwn = hostname === '127.0.0.1' || protocol === 'data:' || protocol === 'blob:'
    if (!isOwn) complaints.push(`a request to ${request.url()}`)
  })
  context.on('console', (message) => {
    const kind = message.type()
    if (kind !== 'error' && kind !== 'warning') return
    if (isRefusal(message.text())) return
    complaints.push(`${kind} in the console: ${message.text()}`)
  })
  context.on('weberror', (error) => complaints.push(`not caught: ${error.error().message}`))
  return { page: await context.newPage(), context, complaints }
}

/** The browser writes down every answer that is none; pages show those that matter themselves. */
function isRefusal(text: string): boolean {
  return /^Failed to load resource: the server responded with a status of 4\d\d/.test(text)
}

function cookieOf({ cookie }: Pick<Member, 'cookie'>, url: string) {
  const at = cookie.indexOf('=')
  return { name: cookie.slice(0, at), value: cookie.slice(at + 1), url, httpOnly: true }
}
