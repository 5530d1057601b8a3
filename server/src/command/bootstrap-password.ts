import { OperatorError } from '../errors.ts'
import type { Secret } from '../platform/secret/secret.ts'

/** A password and its source, for error messages. */
export type BootstrapPassword = { text: string; source: string }

type PasswordSources = {
  flag: string | undefined
  variable: Secret<string> | null
  /** Null unless the operator chose it: by default, a command must not wait for input. */
  stdin: AsyncIterable<Buffer> | null
}

/** Longer than any valid password. */
const LINE_BYTES_MAX = 4_096
const STDIN = 'The password on standard input'

/**
 * Returns the owner's password from the only source that provides one, or null if none does. Every user
 * of the machine can read command lines, so there are two other sources.
 */
export async function readBootstrapPassword({
  flag,
  variable,
  stdin,
}: PasswordSources): Promise<BootstrapPassword | null> {
  if ([flag ?? null, variable, stdin].filter((source) => source !== null).length > 1) {
    throw new OperatorError(
      'The password was given more than once. Use only one of --password, --password-stdin and ' +
        'ANNALS_BOOTSTRAP_PASSWORD.',
    )
  }
  if (flag !== undefined) return { text: flag, source: '--password' }
  if (variable) return { text: variable.reveal(), source: 'ANNALS_BOOTSTRAP_PASSWORD' }
  return stdin && { text: await readLine(stdin, STDIN), source: STDIN }
}

/** The first line, without its line ending. `what` it is starts the error messages. */
export async function readLine(stdin: AsyncIterable<Buffer>, what: string): Promise<string> {
  let bytes = Buffer.alloc(0)
  for await (const chunk of stdin) {
    bytes = Buffer.concat([bytes, chunk])
    if (bytes.includes('\n')) break
    if (bytes.length > LINE_BYTES_MAX) throw new OperatorError(`${what} is too long.`)
  }
  const [line = ''] = decode(bytes, what).split('\n', 1)
  return line.endsWith('\r') ? line.slice(0, -1) : line
}

function decode(bytes: Buffer, what: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new OperatorError(`${what} is not UTF-8.`, { cause })
  }
}
