import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'

/** The identity provider that people can sign in with, if there is one. */
export function useSignInOptions() {
  return useQuery({
    queryKey: ['sign-in-options'],
    queryFn: () => unwrap(client.GET('/dashboard/sign-in-options')),
    staleTime: Number.POSITIVE_INFINITY,
  })
}

const IDENTITY_KEY = ['identity'] as const

/** How the signed-in member signs in. */
export function useIdentity() {
  return useQuery({
    queryKey: IDENTITY_KEY,
    queryFn: () => unwrap(client.GET('/dashboard/identity')),
  })
}

export async function refreshIdentity(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: IDENTITY_KEY })
}

/** What the service puts after the `#` when the browser returns from the identity provider. */
type ProviderReturn = { challenge: string | null; problem: string | null }

const RETURN_HASH = /^#(sign-in|sign-in-challenge)=([\w-]+)$/

export function readProviderReturn(): ProviderReturn {
  const [, name, value = ''] = RETURN_HASH.exec(window.location.hash) ?? []
  return {
    challenge: name === 'sign-in-challenge' ? value : null,
    problem: name === 'sign-in' ? value : null,
  }
}

/** Removes it from the URL, so that a reload or a shared link doesn't repeat it. Call it in an effect. */
export function clearProviderReturn(): void {
  const { hash, pathname, search } = window.location
  if (!RETURN_HASH.test(hash)) return
  window.history.replaceState(window.history.state, '', `${pathname}${search}`)
}

const PROBLEMS = new Map<string, (provider: string) => string>(
  Object.entries<(provider: string) => string>({
    denied: (provider) => `${provider} did not sign you in. Try again, or use your password.`,
    unavailable: (provider) =>
      `${provider} is not available at the moment. Try again in a minute, or use your password.`,
    invalid: (provider) =>
      `The response from ${provider} is not valid. Try again. If that doesn’t help, tell the operator of this service.`,
    sign_in_over: () =>
      'This sign-in is no longer valid. It took too long, was started in another browser or tab, or was already used. Start again.',
    unverified_email: (provider) =>
      `${provider} has not verified your email address, or the address can’t be used here. Verify it there, then try again.`,
    address_not_allowed: () =>
      'Your company allows its dashboard only from certain IP addresses, and yours is not one of them. Use another network, or ask an owner or admin to add it to the allowlist.',
    no_account: () =>
      'You have no account here. Ask an owner or admin of your company for an invitation.',
    other_account: (provider) =>
      `The account with your email address is linked to another person at ${provider}. Ask an owner or admin of your company.`,
    other_address: () =>
      'This invitation is for another email address. Ask for an invitation to your own address.',
    invitation_over: () =>
      'This invitation is no longer valid. Ask an owner or admin of your company for a new one.',
    has_account: () =>
      'You already have an account, so you can’t accept an invitation. Sign in to your account instead.',
    several_companies: () =>
      'Your groups give you access to several companies, but an account belongs to one. Ask the operator of this service.',
    access_removed: () =>
      'Your groups no longer give you access. Ask an owner or admin of your company.',
    company_full: () =>
      'Your account could not be created, because the company has too many members. Ask an owner or admin of your company.',
    busy: () => 'Too many people are signing in. Try again in a minute.',
  }),
)

/** A sentence for what went wrong at the identity provider. */
export function problemText(problem: string, provider: string): string {
  const text = PROBLEMS.get(problem) ?? (() => 'The sign-in failed. Try again.')
  const sentence = text(provider)
  return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}`
}
