import type { SignInSecrets } from '../../../platform/oidc/protocol.ts'
import type { Secret } from '../../../platform/secret/secret.ts'
import { SecretBox } from '../../../platform/secret/secret-box.ts'
import { MINUTE_MS } from '../../../platform/time/time-units.ts'
import { parseJson } from '../../../platform/json/parse-json.ts'

/** How long a person has to sign in at the identity provider. */
export const SIGN_IN_LIFE_MS = 10 * MINUTE_MS

/** A sign-in that is under way at the identity provider. */
export type PendingSignIn = {
  secrets: SignInSecrets
  /** The page of the dashboard to return to. */
  returnTo: string
  /** The token of the invitation to accept. */
  linkToken: string | null
  expiresAtMs: number
}

const PURPOSE = 'oidc-sign-in'
const SEALED = /^[\w-]{40,3500}$/

/**
 * Keeps a pending sign-in in the browser that started it, encrypted, so that no other browser can finish it, and
 * strangers can't fill a table with sign-ins that they never finish.
 */
export class SignInCookie {
  readonly #name: string
  readonly #attributes: string
  readonly #box: SecretBox

  constructor({ isSecure, secretKey }: { isSecure: boolean; secretKey: Secret<Buffer> }) {
    this.#name = isSecure ? '__Host-annals_sign_in' : 'annals_sign_in'
    // Lax: the browser must send it when the identity provider redirects back here.
    this.#attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
    this.#box = new SecretBox(secretKey, PURPOSE)
  }

  /** Returns the value for `Set-Cookie`. */
  set(pending: PendingSignIn): string {
    const sealed = this.#box.seal(JSON.stringify(pending), PURPOSE).toString('base64url')
    return `${this.#name}=${sealed}; Max-Age=${SIGN_IN_LIFE_MS / 1_000}; ${this.#attributes}`
  }

  clear(): string {
    return `${this.#name}=; Max-Age=0; ${this.#attributes}`
  }

  /** Null if the cookie is missing, appears twice, was not created by this service, or has expired. */
  read(header: string | undefined, nowMs: number): PendingSignIn | null {
    const [sealed, ...others] = (header ?? '')
      .split(';')
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(`${this.#name}=`))
      .map((pair) => pair.slice(this.#name.length + 1))
    if (sealed === undefined || others.length > 0 || !SEALED.test(sealed)) return null
    const text = this.#box.open(Buffer.from(sealed, 'base64url'), PURPOSE)
    if (text === null) return null
    // Only this service can have sealed it.
    const pending: PendingSignIn = parseJson(text)
    const { expiresAtMs } = pending
    // A cookie from before the clock stepped back doesn't live longer. The clocks of nodes differ a little.
    const lifeMsMax = SIGN_IN_LIFE_MS + MINUTE_MS
    return expiresAtMs > nowMs && expiresAtMs <= nowMs + lifeMsMax ? pending : null
  }
}
