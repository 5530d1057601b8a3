import { randomUUID } from 'node:crypto'
import { AnnalsNetworkError, AnnalsTimeoutError } from '../../../../../sdk/src/client/errors.ts'
import type { EventInput } from '../../../../../sdk/src/resource/types.ts'
import { OperatorError } from '../../../errors.ts'
import { findSeq } from './find-seqs.ts'
import type { ClientCommand } from '../run-client.ts'
import { CONFLICT, sendFile } from './send-file.ts'

export type SendOptions = {
  category?: string
  action?: string
  actorId?: string
  actorEmail?: string
  actorRole?: string
  resourceType?: string
  resourceId?: string
  project?: string
  timestamp?: string
  metadata: string[]
  idempotencyKey?: string
  file?: string
}

/** Options that describe an event, which a file does by itself. */
const EVENT_OPTIONS = [
  'category',
  'action',
  'actorId',
  'actorEmail',
  'actorRole',
  'resourceType',
  'resourceId',
  'project',
  'timestamp',
] as const satisfies readonly (keyof SendOptions)[]

/** `annals events send`: stores one event from options, or the events of a file. */
export async function sendEvents(command: ClientCommand, options: SendOptions): Promise<void> {
  if (options.file === undefined) return await sendOne(command, options)
  const { file, idempotencyKey, metadata, ...others } = options
  if (metadata.length > 0 || EVENT_OPTIONS.some((name) => others[name] !== undefined)) {
    throw new OperatorError('Send either a file with --file or one event with options, not both.')
  }
  await sendFile(command, file, idempotencyKey)
}

async function sendOne(
  { annals, output, signal }: ClientCommand,
  options: SendOptions,
): Promise<void> {
  const event = eventOf(options)
  const { id, isReplay, isMismatch } = await annals.events
    .create(event, { signal })
    .catch((error) => {
      if (error instanceof AnnalsNetworkError || error instanceof AnnalsTimeoutError) {
        const key = event.idempotencyKey
        output.note(
          `annals: If the event was stored, this stores it only once: --idempotency-key ${key}`,
        )
      }
      throw error
    })
  const seq = await findSeq(annals, id, signal)
  const result = isMismatch ? 'conflict' : isReplay ? 'already stored' : 'stored'
  await output.item({ id, seq, result }, [
    ['id', id],
    ['seq', seq === null ? '' : String(seq)],
    ['result', result],
  ])
  if (isMismatch) throw new OperatorError(`Not stored. ${CONFLICT}`)
}

function eventOf(options: SendOptions): EventInput {
  const { category, action, project, timestamp, idempotencyKey } = options
  if (category === undefined || action === undefined) {
    throw new OperatorError('Set --category and --action, or send a file with --file.')
  }
  const actor = present({
    id: options.actorId,
    email: options.actorEmail,
    role: options.actorRole,
  })
  const resource = present({ type: options.resourceType, id: options.resourceId })
  const metadata = metadataOf(options.metadata)
  return {
    category,
    action,
    ...present({ projectId: project, timestamp }),
    idempotencyKey: idempotencyKey ?? randomUUID(),
    ...(Object.keys(actor).length > 0 && { actor }),
    ...(Object.keys(resource).length > 0 && { resource }),
    ...(options.metadata.length > 0 && { metadata }),
  }
}

function present(values: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

function metadataOf(texts: readonly string[]): Record<string, string> {
  const metadata = new Map<string, string>()
  for (const [key, value] of texts.map(keyAndValue)) {
    if (metadata.has(key)) throw new OperatorError(`--metadata ${key} is set twice.`)
    metadata.set(key, value)
  }
  return Object.fromEntries(metadata)
}

function keyAndValue(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw new OperatorError(`--metadata must be KEY=VALUE. Got "${text}".`)
  return [text.slice(0, at), text.slice(at + 1)]
}
