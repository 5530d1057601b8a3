import { once } from 'node:events'
import { createServer } from 'node:net'
import { OperatorError } from '../errors.ts'

/** What the operator can change. `port` ends a sentence, and `address` is one. */
type PortAdvice = { port: string; address: string }

/** Throws an `OperatorError` if the program can't listen there. Port 0 means any free one. */
export async function refuseOccupiedPort(
  { host, port }: { host: string; port: number },
  advice: PortAdvice,
): Promise<void> {
  if (port === 0) return
  const probe = createServer()
  try {
    probe.listen({ host, port })
    await once(probe, 'listening')
    probe.close()
    await once(probe, 'close')
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? error.code : error
    const sentence =
      reason === 'EADDRINUSE'
        ? `Port ${port} on ${host} is already in use. Stop the program that uses it, or ${advice.port}.`
        : `Can't listen on ${host}:${port} (${String(reason)}). ${advice.address}`
    throw new OperatorError(sentence, { cause: error })
  }
}
