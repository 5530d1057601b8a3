import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
} from '@playwright/test'
import type { Member } from '../../../server/test/harness/dashboard/dashboard.ts'

/** A page responds within this time, even on a busy machine. */
export const TIMEOUT_MS = 60_000
export const DESKTOP = { width: 1_280, height: 800 }
export const PHONE = { width: 390, height: 844 }

export type Visitor = {
  /** Omitted if signed out. */
  member?: Pick<Member, 'cookie'>
  /** For a separate window: one with other options, or one that the test changes beyond its page and its size. */
  context?: BrowserContextOptions
  /** The test cuts the connection, and the browser logs every request that fails then. */
  mayLoseService?: true
}

/** A browser window that records everything that goes wrong in it. */
export type Visit = {
  page: Page
  context: BrowserContext
  /** Requests to other hosts, console messages and uncaught errors. */
  problems: string[]
}

export async function openVisit(
  browser: Browser,
  url: string,
  { member, context: requests, mayLoseService }: Visitor,
): Promise<Visit> {
  const context = await browser.newContext({
    baseURL: url,
    viewport: DESKTOP,
    // The same wherever the tests run, and not the time zone of the service.
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    // Disables animations.
    reducedMotion: 'reduce',
    ...requests,
  })
  context.setDefaultTimeout(TIMEOUT_MS)
  if (member) await context.addCookies([cookieOf(member, url)])
  const problems: string[] = []
  context.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url())
    const isOwn = hostname === '127.0.0.1' || protocol === 'data:' || protocol === 'blob:'
    if (!isOwn) problems.push(`a request to ${request.url()}`)
  })
  context.on('console', (message) => {
    const kind = message.type()
    if (kind !== 'error' && kind !== 'warning') return
    if (isRefusal(message.text())) return
    if (mayLoseService && isOutage(message.text())) return
    problems.push(`${kind} in the console: ${message.text()} (${message.location().url})`)
  })
  context.on('weberror', (error) => problems.push(`not caught: ${error.error().message}`))
  return { page: await context.newPage(), context, problems }
}

/**
 * The browser logs every 4xx response. Pages show those that matter themselves. They retry a 503, which the
 * service returns on a busy machine.
 */
function isRefusal(text: string): boolean {
  return /^Failed to load resource: the server responded with a status of (4\d\d|503)/.test(text)
}

/** Logged by the browser for requests, and by Vite for the style sheets of a page. */
function isOutage(text: string): boolean {
  return /^(Failed to load resource: net::ERR_|Couldn't load preload assets)/.test(text)
}

export function cookieOf({ cookie }: Pick<Member, 'cookie'>, url: string) {
  const at = cookie.indexOf('=')
  return { name: cookie.slice(0, at), value: cookie.slice(at + 1), url, httpOnly: true }
}
