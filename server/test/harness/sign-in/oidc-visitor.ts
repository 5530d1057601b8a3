import assert from 'node:assert/strict'
import { callAs, type Member } from '../dashboard/dashboard.ts'
import { TEST_PUBLIC_URL, type TestProvider } from './identity-provider.ts'
import type { TestApp, TestResponse } from '../app/start-app.ts'

/** The browser of a person: it keeps the cookies of the service and of the identity provider. */
export class OidcVisitor {
  readonly #annals: TestApp
  readonly #provider: TestProvider
  readonly jar = new Map<string, string>()
  readonly #providerJar = new Map<string, string>()

  constructor(annals: TestApp, provider: TestProvider) {
    this.#annals = annals
    this.#provider = provider
  }

  /** Sends a request to the service, with the cookies of this browser. */
  get call(): Member['call'] {
    return callAs(this.#annals, headerOf(this.jar))
  }

  /** Where the service sends the browser. */
  async start(body: { returnTo?: string; linkToken?: string } = {}): Promise<string> {
    const response = await this.call('POST', '/dashboard/oidc/start', { body })
    assert.equal(response.status, 200, response.text)
    keepCookies(this.jar, response.headers)
    return response.json.url
  }

  /** Signs in at the provider. Returns the path of the service that the provider leads to. */
  async authorize(url: string, person: string): Promise<string> {
    const page = await this.#visit(url)
    const form = new URL(page.headers.get('location') ?? '', url)
    let response = await this.#visit(form.href, new URLSearchParams({ person }))
    for (let hops = 0; hops < 5; hops += 1) {
      const location = response.headers.get('location') ?? ''
      if (location.startsWith(TEST_PUBLIC_URL)) return location.slice(TEST_PUBLIC_URL.length)
      response = await this.#visit(new URL(location, url).href)
    }
    throw new Error('the provider does not lead back')
  }

  /** Follows the provider's redirect to the service, without following the next. */
  async finish(path: string): Promise<{ status: number; location: string | null }> {
    const response = await fetch(`${this.#annals.url}${path}`, {
      headers: { cookie: headerOf(this.jar), 'sec-fetch-site': 'cross-site' },
      redirect: 'manual',
    })
    keepCookies(this.jar, response.headers)
    return { status: response.status, location: response.headers.get('location') }
  }

  /** The whole sign-in. Returns where the browser ends up. */
  async signIn(
    person: string,
    body: { returnTo?: string; linkToken?: string } = {},
  ): Promise<string | null> {
    const path = await this.authorize(await this.start(body), person)
    const { status, location } = await this.finish(path)
    assert.equal(status, 303)
    return location
  }

  /** The member who is signed in. */
  async session(): Promise<TestResponse> {
    return await this.call('GET', '/dashboard/session')
  }

  async #visit(url: string, body: URLSearchParams | null = null): Promise<Response> {
    assert(url.startsWith(this.#provider.issuer), url)
    const response = await fetch(url, {
      method: body ? 'POST' : 'GET',
      headers: { cookie: headerOf(this.#providerJar) },
      body,
      redirect: 'manual',
    })
    await response.arrayBuffer()
    keepCookies(this.#providerJar, response.headers)
    return response
  }
}

function keepCookies(jar: Map<string, string>, headers: Headers): void {
  for (const line of headers.getSetCookie()) {
    const [pair = '', ...attributes] = line.split(';')
    const [name = '', ...value] = pair.split('=')
    const isOver = attributes.some((text) => /max-age=0|expires=thu, 01 jan 1970/i.test(text))
    if (isOver) jar.delete(name)
    else jar.set(name, value.join('='))
  }
}

function headerOf(jar: ReadonlyMap<string, string>): string {
  return [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
}
