import assert from 'node:assert/strict'
import { hash } from 'node:crypto'

import { formatUtcMs, isUtcMs } from '../platform/time/utc-time.ts'
import { canonicalString } from './canonical.ts'
import {
  commitPart,
  parsePartTexts,
  partTextsJson,
  SALT_BYTES,
  type PartTexts,
  type Salts,
} from './commitment.ts'
import {
  PART_NAMES,
  type ChainHead,
  type EventId,
  type PartName,
  type PendingEvent,
  type SealedEvent,
} from './event.ts'

/**
 * Seals the next event of a chain. Pure: the id and the salts are arguments. docs/chain-format.md specifies
 * the format, and vectors/chain.json has test vectors.
 */
export function sealEvent(
  head: ChainHead,
  event: PendingEvent,
  { id, salts }: { id: EventId; salts: Salts },
): SealedEvent {
  assert(head.lastId === null || id > head.lastId, 'ids ascend along the chain')
  const commitments: PartTexts = {}
  const saltTexts: PartTexts = {}
  for (const name of PART_NAMES) {
    const value = event[name]
    if (value === null) continue
    commitments[name] = commitPart(name, value, salts[name])
    saltTexts[name] = salts[name].toString('hex')
  }
  const sealedEvent = {
    ...event,
    id,
    seq: head.seq + 1,
    prevHash: head.hash,
    hash: '',
    sealed: partTextsJson(commitments),
    salts: partTextsJson(saltTexts),
  }
  sealedEvent.hash = leafHash(coreText(sealedEvent))
  return sealedEvent
}

/** What the hash of an event covers: the commitments to its parts, not the parts themselves. */
export type EventCore = Omit<SealedEvent, 'hash' | 'salts' | PartName>

/**
 * The hashed text: the RFC 8785 canonical JSON of the core. It is a template with the keys in canonical
 * order, filled with values that are already canonical; the tests compare it with a general canonicalizer.
 * Ids, hashes and times contain no characters that need escaping.
 */
export function coreText(event: EventCore): string {
  const projectId = event.projectId === null ? 'null' : `"${event.projectId}"`
  const traceId = event.traceId === null ? 'null' : canonicalString(event.traceId)
  return (
    `{"action":${canonicalString(event.action)},"category":${canonicalString(event.category)}` +
    `,"companyId":"${event.companyId}","id":"${event.id}","prevHash":"${event.prevHash}"` +
    `,"projectId":${projectId},"receivedAt":"${formatUtcMs(event.receivedAtMs)}"` +
    `,"sealed":${event.sealed},"seq":${event.seq},"timestamp":"${formatUtcMs(event.timestampMs)}"` +
    `,"traceId":${traceId},"v":1,"workspaceId":"${event.workspaceId}"}`
  )
}

/** SHA-256(0x00 ‖ core), an RFC 6962 leaf hash. U+0000 is the byte 0x00 in UTF-8. */
function leafHash(core: string): string {
  return hash('sha256', `\0${core}`, 'hex')
}

/** The result of verifying stored data. A problem is a finding, not an exception. */
export type Verdict = { ok: true } | { ok: false; problem: string }
type Recomputed = { ok: true; hash: string } | { ok: false; problem: string }

/** Checks that a stored event is the one that follows `prev`. The problem text contains no payload. */
export function verifyLink(prev: ChainHead, event: SealedEvent): Verdict {
  if (event.seq !== prev.seq + 1) {
    return failedCheck(`seq is ${event.seq}, expected ${prev.seq + 1}`)
  }
  if (event.prevHash !== prev.hash) {
    return failedCheck(
      `prevHash is ${event.prevHash}, but the hash of the previous event is ${prev.hash}`,
    )
  }
  if (prev.lastId !== null && event.id <= prev.lastId) {
    return failedCheck(`id ${event.id} is not greater than the previous id ${prev.lastId}`)
  }
  const recomputed = recomputeHash(event)
  if (!recomputed.ok) return recomputed
  if (recomputed.hash !== event.hash) {
    return failedCheck(`hash is ${event.hash}, but the stored fields hash to ${recomputed.hash}`)
  }
  return { ok: true }
}

/** The hash that the stored columns must have, if every part that is present matches `sealed`. */
export function recomputeHash(event: SealedEvent): Recomputed {
  const problem = fieldProblem(event) ?? commitmentProblem(event)
  if (problem !== null) return failedCheck(problem)
  return { ok: true, hash: leafHash(coreText(event)) }
}

/** Like `recomputeHash`, for a core, which doesn't contain the parts. */
export function recomputeCoreHash(event: EventCore): Recomputed {
  const problem = fieldProblem(event)
  if (problem !== null) return failedCheck(problem)
  if (parsePartTexts(event.sealed, COMMITMENT_HEX_DIGITS) === null)
    return failedCheck(NOT_CANONICAL)
  return { ok: true, hash: leafHash(coreText(event)) }
}

/** Finds values that no sealed event can have and that the template in `coreText` can't represent. */
function fieldProblem(event: EventCore): string | null {
  if (!Number.isSafeInteger(event.seq)) return 'seq is not an integer'
  if (!isUtcMs(event.timestampMs)) return 'timestamp is outside the years 0000 to 9999'
  if (!isUtcMs(event.receivedAtMs)) return 'receivedAt is outside the years 0000 to 9999'
  for (const name of ['action', 'category', 'traceId'] as const) {
    if (event[name]?.isWellFormed() === false) return `${name} is not valid Unicode`
  }
  return null
}

const COMMITMENT_HEX_DIGITS = 64
/** Synchronous calls can't overlap, so they share it. */
const scratchSalt = Buffer.alloc(SALT_BYTES)
const NOT_CANONICAL = 'sealed is not a canonical map of commitments'

function commitmentProblem(event: SealedEvent): string | null {
  const commitments = parsePartTexts(event.sealed, COMMITMENT_HEX_DIGITS)
  if (commitments === null) return NOT_CANONICAL
  const salts = parsePartTexts(event.salts, SALT_BYTES * 2)
  if (salts === null) return 'salts is not a canonical map of salts'
  for (const name of PART_NAMES) {
    const value = event[name]
    const commitment = commitments[name]
    const salt = salts[name]
    if (value === null) {
      // Erasure removes the value and its salt together. A salt without a value
      // means that the value was lost.
      if (salt !== undefined) return `${name} is missing, but its salt is present`
      continue
    }
    if (commitment === undefined) return `${name} was added: sealed has no commitment to it`
    if (salt === undefined) return `${name} has no salt`
    scratchSalt.write(salt, 'hex')
    if (commitPart(name, value, scratchSalt) !== commitment) {
      return `${name} does not match its commitment`
    }
  }
  return null
}

function failedCheck(problem: string): { ok: false; problem: string } {
  return { ok: false, problem }
}
