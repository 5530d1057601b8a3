type Notice = { routine?: string | undefined; message?: string | undefined }

/** The part of a `pg` client that emits notices. */
export type NoticeSource = {
  on(event: 'notice', listener: (notice: Notice) => void): unknown
  off(event: 'notice', listener: (notice: Notice) => void): unknown
}

/**
 * A commit that no standby has confirmed, although the server is configured to wait for one. It is
 * stored only on this server, and a failover would lose it, so its outcome is unknown.
 */
export class UnconfirmedCommitError extends Error {
  override name = 'UnconfirmedCommitError'
  constructor() {
    super('the wait for the synchronous standby was canceled')
  }
}

/**
 * Runs statements on a client, and rejects if a commit among them was not confirmed. If an operator
 * cancels the wait for a standby, PostgreSQL reports success with a warning, which arrives before the
 * response is complete.
 */
export async function confirmCommits<T>(client: NoticeSource, work: () => Promise<T>): Promise<T> {
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
 * Recognizes the warning by the function that raised it: other warnings have the same SQLSTATE, and the
 * server may translate the text. The text is a fallback for a proxy that omits the function.
 */
function isCanceledWait({ routine, message = '' }: Notice): boolean {
  return routine === 'SyncRepWaitForLSN' || /wait for synchronous replication/.test(message)
}
