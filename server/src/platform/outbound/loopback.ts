import { isIPv4 } from 'node:net'

/** Whether this is `localhost` or a loopback address. An IPv6 address can have brackets, as in `URL.hostname`. */
export function isLoopback(hostname: string): boolean {
  const name = hostname.toLowerCase().replace(/\.$/, '')
  if (['localhost', '::1', '[::1]'].includes(name)) return true
  return isIPv4(name) && name.startsWith('127.')
}
