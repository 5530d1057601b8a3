import type { Config } from './config.ts'

/** The URL that links start with if no request is at hand: the public one, or else the listening address. */
export function baseUrlOf({ publicUrl, host, port }: Config): string {
  const listening = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  return publicUrl?.replace(/\/+$/, '') ?? listening
}
