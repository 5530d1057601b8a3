import { parseBaseUrl } from '../../../../sdk/src/client/connection.ts'
import { OperatorError } from '../../errors.ts'
import { isLoopback } from '../../platform/outbound/loopback.ts'

const DEFAULT_API_URL = 'http://127.0.0.1:8080'

/** The service that the commands talk to, and the key that they send. */
export type ApiTarget = { url: string; apiKey: string }

/** Reads `ANNALS_API_URL` and `ANNALS_API_KEY`. The key is empty if it is missing. */
export function readTarget(env: NodeJS.ProcessEnv): ApiTarget {
  const url = (env.ANNALS_API_URL || DEFAULT_API_URL).trim()
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new OperatorError(
      'ANNALS_API_URL must be the address of the service, such as https://annals.example.',
    )
  }
  const { username, password } = new URL(url)
  if (username !== '' || password !== '') {
    throw new OperatorError(
      'ANNALS_API_URL must not contain a user or a password. Set the key in ANNALS_API_KEY.',
    )
  }
  const apiKey = (env.ANNALS_API_KEY ?? '').trim()
  if (!/^[\x21-\x7e]*$/.test(apiKey)) {
    throw new OperatorError('ANNALS_API_KEY is not an API key. Copy the whole key again.')
  }
  return { url: parseBaseUrl(url), apiKey }
}

/** Whether the service runs on this machine, so that it can send requests to its loopback address. */
export function isOnThisMachine({ url }: ApiTarget): boolean {
  return isLoopback(new URL(url).hostname)
}
