import { SESSION_LIFE_MS } from '../../tenancy/session-store.ts'

/** How the cookie is named and kept, which depends on how people reach the service. */
export class SessionCookie {
  /** `__Host-` binds it to this host and to TLS; a browser refuses it over plain http. */
  readonly name: string
  readonly #attributes: string

  constructor({ isSecure }: { isSecure: boolean }) {
    this.name = isSecure ? '__Host-annals_session' : 'annals_session'
    this.#attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
  }

  /** The value for `Set-Cookie`. */
  set(token: string): string {
    return `${this.name}=${token}; Max-Age=${SESSION_LIFE_MS / 1_000}; ${this.#attributes}`
  }

  clear(): string {
    return `${this.name}=; Max-Age=0; ${this.#attributes}`
  }

  /** Null when there is none, or more than one: then somebody has planted the other. */
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
