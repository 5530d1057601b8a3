import { createBoundedFetch } from '../../../platform/outbound/bounded-fetch.ts'
import { findCosignature } from '../../../platform/tlog/signed-note.ts'
import type { WitnessSetting } from '../../../platform/tlog/witness-setting.ts'

/** A cosignature has about 200 bytes, and a witness can have several keys. */
const send = createBoundedFetch({ bodyBytesMax: 16 * 1_024 })
const REASON_LENGTH_MAX = 200
const SIZE = /^(0|[1-9]\d{0,15})\n?$/
/** What a witness says about a checkpoint. Any other status is about the witness itself. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 404, 422])

type AddCheckpoint = { oldSize: number; proof: readonly Buffer[]; note: string }

/**
 * `conflict`: the witness has cosigned a tree of another size than the old one. `refused`: it doesn't cosign this
 * checkpoint. `failed`: it can't be reached or doesn't behave like a witness.
 */
export type WitnessOutcome =
  | { kind: 'cosigned'; line: string }
  | { kind: 'conflict'; size: number }
  | { kind: 'refused' | 'failed'; reason: string }

/** Sends `add-checkpoint` of C2SP tlog-witness. Never throws, because a witness can return anything. */
export async function addCheckpoint(
  { url, key }: WitnessSetting,
  { oldSize, proof, note }: AddCheckpoint,
  signal: AbortSignal,
): Promise<WitnessOutcome> {
  const lines = [`old ${oldSize}`, ...proof.map((hash) => hash.toString('base64')), '', note]
  try {
    const headers = { 'content-type': 'text/plain; charset=utf-8' }
    const request = { method: 'POST', headers, body: lines.join('\n') }
    const response = await send(`${url}/add-checkpoint`, request, signal)
    const text = await response.text()
    if (response.status !== 200) return refusalOf(response.status, text)
    const line = findCosignature(note, text, key)
    if (line === null) return failedOutcome('it returned no valid cosignature by its key')
    return { kind: 'cosigned', line }
  } catch (error) {
    return failedOutcome(causeOf(error))
  }
}

function refusalOf(status: number, text: string): WitnessOutcome {
  if (status === 409) {
    const [, size] = SIZE.exec(text) ?? []
    if (size !== undefined) return { kind: 'conflict', size: Number(size) }
  }
  const reason = `it returned ${status}: ${printable(text)}`
  return REFUSALS.has(status) ? { kind: 'refused', reason } : failedOutcome(reason)
}

function failedOutcome(reason: string): WitnessOutcome {
  return { kind: 'failed', reason }
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return printable(String(error))
  return error.name === 'TimeoutError' ? 'it did not respond in time' : printable(error.message)
}

/** The start of an untrusted text, for the log. */
function printable(text: string): string {
  return text
    .replaceAll(/[^\x20-\x7e]+/g, ' ')
    .slice(0, REASON_LENGTH_MAX)
    .trim()
}
