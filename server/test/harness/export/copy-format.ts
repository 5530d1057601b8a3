import type { SealedEvent } from '../../../src/ledger/event.ts'
import { HotPage } from '../../../src/ledger/hot/hot-page.ts'
import type { WorkspaceId } from '../../../src/platform/id.ts'

const EPOCH_2000_MS = 946_684_800_000n

/** An event as a page has it. A stub has neither parts nor salts. */
type PageEvent = Omit<SealedEvent, 'salts'> & { salts: string | null }

export function stubOf(event: SealedEvent): PageEvent {
  return { ...event, actor: null, resource: null, metadata: null, salts: null }
}

/** A page of the table as PostgreSQL would send these events, in its documented binary format. */
export function hotPageOf(
  events: readonly PageEvent[],
  { workspaceId, limit = 1_000_000 }: { workspaceId: WorkspaceId; limit?: number },
): HotPage {
  const toSeq = events.at(-1)?.seq ?? 0
  return new HotPage(copyBytes(events), { workspaceId, toSeq, limit })
}

export function copyBytes(events: readonly PageEvent[]): Buffer {
  const head = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
  return Buffer.concat([head, ...events.map(rowBytes), Buffer.from([0xff, 0xff])])
}

function rowBytes(event: PageEvent): Buffer {
  const columns = [
    uuid(event.id),
    int64(BigInt(event.seq)),
    time(event.timestampMs),
    time(event.receivedAtMs),
    uuid(event.companyId),
    Buffer.from(event.hash, 'hex'),
    Buffer.from(event.prevHash, 'hex'),
    uuid(event.projectId),
    uuid(event.traceId),
    text(event.category),
    text(event.action),
    text(event.actor),
    text(event.resource),
    text(event.metadata),
    text(event.sealed),
    text(event.salts),
  ]
  return Buffer.concat([Buffer.from([0, columns.length]), ...columns.map(field)])
}

function field(value: Buffer | null): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(value?.length ?? -1)
  return Buffer.concat([length, value ?? Buffer.alloc(0)])
}

function uuid(id: string | null): Buffer | null {
  return id === null ? null : Buffer.from(id.replaceAll('-', ''), 'hex')
}

function int64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(value)
  return bytes
}

function time(ms: number): Buffer {
  return int64((BigInt(ms) - EPOCH_2000_MS) * 1_000n)
}

function text(value: string | null): Buffer | null {
  return value === null ? null : Buffer.from(value)
}
