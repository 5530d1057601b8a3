import { baseUrlOf } from '../../base-url.ts'
import { isLoopback } from '../../platform/outbound/loopback.ts'
import { maskUrls } from '../config/config-values.ts'
import { type Finding, finding, type Machine } from './check.ts'

/** How users reach the service, which only these settings say. */
export async function checkAddresses({ config }: Machine): Promise<Finding> {
  const { protocol, hostname } = new URL(baseUrlOf(config))
  const url = maskUrls(baseUrlOf(config))
  if (config.publicUrl === null && config.smtpUrl !== null) {
    return finding.warning(
      `Emails contain links that start with ${url}, because ANNALS_PUBLIC_URL is not set.`,
      'Set ANNALS_PUBLIC_URL to the URL at which users reach the service.',
    )
  }
  if (config.publicUrl !== null && protocol === 'http:' && !isLoopback(hostname)) {
    return finding.warning(
      `ANNALS_PUBLIC_URL is ${url}, so passwords and keys cross the network without TLS.`,
      'Put a proxy with TLS in front of the service, and set ANNALS_PUBLIC_URL to its https address.',
    )
  }
  if (protocol === 'https:' && config.trustedProxies.length === 0) {
    return finding.warning(
      'ANNALS_PUBLIC_URL starts with https, but ANNALS_TRUSTED_PROXIES is empty: all callers have the address of the proxy, in rate limits and for the IP allowlist.',
      'Set ANNALS_TRUSTED_PROXIES to the addresses of the proxy.',
    )
  }
  return finding.ok(`Links start with ${url}.`)
}
