import type { FastifyReply } from 'fastify'
import { type SliceOwner, TimeSlice } from '../platform/scheduling/time-slice.ts'

/** Joining and sending this much takes less than a millisecond. */
const AT_ONCE_LENGTH_MAX = 128 * 1_024

/**
 * Joins the records of a page with commas. A large page is joined and sent in its own time slice, so that a
 * turn of the event loop that decodes several pages doesn't send them as well.
 */
export async function joinRecords<Item>(
  items: readonly Item[],
  recordJson: (item: Item) => string,
  owner: SliceOwner,
): Promise<string> {
  const slice = new TimeSlice(owner)
  const records: string[] = []
  let length = 0
  for (const item of items) {
    const record = recordJson(item)
    records.push(record)
    length += record.length
    if (slice.isOver) await slice.next()
  }
  if (length > AT_ONCE_LENGTH_MAX) await slice.next()
  return records.join(',')
}

/** Serializes a list and the fields after it. A large list is serialized in time slices. */
export async function listJson<Item>(
  name: string,
  items: readonly Item[],
  {
    record,
    owner,
    rest = {},
  }: { record: (item: Item) => object; owner: SliceOwner; rest?: object },
): Promise<string> {
  const records = await joinRecords(items, (item) => JSON.stringify(record(item)), owner)
  const others = JSON.stringify(rest).slice(1)
  return `{"${name}":[${records}]${others === '}' ? '' : ','}${others}`
}

/**
 * The response is JSON that the handler returns as text. It must not await `reply.send` instead, which would
 * keep its slot until the client has read the response.
 */
export function asJsonText<Reply extends Pick<FastifyReply, 'type' | 'serializer'>>(
  reply: Reply,
): Reply {
  reply.type('application/json; charset=utf-8').serializer(String)
  return reply
}
