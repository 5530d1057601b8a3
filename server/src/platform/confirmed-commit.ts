type Notice = { routine?: string | undefined; message?: string | undefined }

/** A `pg` client, as far as its notices go. */
export type NoticeSource = {
  on(event: 'notice', listener: (notice: Notice) => void): unknown
  off(event: 'notice', listener: (notice: Notice) => void): unknown
}

/**
 * A commit that no standby has confirmed, although the server is configured to wait for one. It is
 * stored on this server alone, and a failover loses it: its outcome is unknown.
 */
export class UnconfirmedCommitError extends Error {
  override name = 'UnconfirmedCommitError'
  constructor() {
    super('the wait for the synchronous standby was canceled')
  }
}

/**
 * Runs statements on a client, and rejects when a commit among them was not confirmed. When somebody
 * cancels the wait for a standby, PostgreSQL reports success and adds a warning; the warning arrives
 * before the answer is complete.
 */
export async function confirmed<T>(client: NoticeSource, work: () => Promise<T>): Promise<T> {
  let isConfirmed = true
  const listen = (notice: Notice): void => {
    if (isCanceledWait(notice)) isConfirmed = false
  }
  client.on('notice', listen)
  try {
    const result = await work()
    if (!isConfirmed) throw new UnconfirmedCommitError()
    return result
  } finally {
    client.off('notice', listen)
  }
}

/**
 * Its SQLSTATE is that of every other warning, and the server may translate its text, so the function
 * that raised it decides. The text is for a server in between that leaves the function out.
 */
function isCanceledWait({ routine, message = '' }: Notice): boolean {
  return routine === 'SyncRepWaitForLSN' || /wait for synchronous replication/.test(message)
}
