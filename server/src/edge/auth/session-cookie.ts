import { SESSION_LIFE_MS } from '../../tenancy/sign-in/session-store.ts'

/**
 * Names, sets and reads the session cookie. The name and attributes depend on whether users connect over TLS.
 */
export class SessionCookie {
  /** The `__Host-` prefix binds the cookie to this host and to TLS. Browsers reject it over plain HTTP. */
  readonly name: string
  readonly #attributes: string

  constructor({ isSecure }: { isSecure: boolean }) {
    this.name = isSecure ? '__Host-annals_session' : 'annals_session'
    this.#attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
  }

  /** Returns the value for `Set-Cookie`. */
  set(token: string): string {
    return `${this.name}=${token}; Max-Age=${SESSION_LIFE_MS / 1_000}; ${this.#attributes}`
  }

  clear(): string {
    return `${this.name}=; Max-Age=0; ${this.#attributes}`
  }

  /**
   * Returns null if the cookie is missing, or appears more than once: another site may have planted the
   * second.
   */
  read(header: string | undefined): string | null {
    const values = (header ?? '')
      .split(';')
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(`${this.name}=`))
      .map((pair) => pair.slice(this.name.length + 1))
    const [value] = values
    return values.length === 1 && value !== undefined && TOKEN.test(value) ? value : null
  }
}

const TOKEN = /^[\w-]{43}$/
