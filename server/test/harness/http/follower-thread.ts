import { once } from 'node:events'
import { get, type ClientRequest, type IncomingMessage } from 'node:http'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'

export type FollowerOptions = {
  url: string
  cookie: string
  lastId?: string
  /** Stops reading after the first message of the stream. */
  readsNothing?: boolean
}

/** One message of a stream. `seq` is null unless it is an event. */
export type Followed = { event: string; seq: number | null; workspaceId: string | null; id: string }

/** A short report, because a long one would count as work of the thread that reads it. */
export type Progress = { events: number; gaps: number; lastSeq: number; isLastGap: boolean }

type Command =
  | { kind: 'open'; followers: readonly FollowerOptions[] }
  | { kind: 'progress' | 'report' | 'close' }

/**
 * Clients of the live tail on a separate thread, so that their work doesn't count as work of the server,
 * which runs on this thread.
 */
export class FollowerThread implements AsyncDisposable {
  readonly #worker = new Worker(new URL(import.meta.url))

  /** Resolves when every stream has sent its first message. */
  async open(followers: readonly FollowerOptions[]): Promise<void> {
    await this.#request({ kind: 'open', followers })
  }

  /** Per follower, in the order in which they were opened. */
  async progress(): Promise<Progress[]> {
    return await this.#request({ kind: 'progress' })
  }

  /** Everything that each follower has received. */
  async report(): Promise<Followed[][]> {
    return await this.#request({ kind: 'report' })
  }

  async closeAll(): Promise<void> {
    await this.#request({ kind: 'close' })
  }

  async #request<T>(command: Command): Promise<T> {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- not a window
    this.#worker.postMessage(command)
    const [result] = await once(this.#worker, 'message')
    if (typeof result === 'string') throw new Error(result)
    return result
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate()
  }
}

const opened: { request: ClientRequest; followed: Followed[] }[] = []

async function openOne({ url, cookie, lastId, readsNothing }: FollowerOptions): Promise<void> {
  const headers = { cookie, 'sec-fetch-site': 'same-origin' }
  const request = get(url, {
    agent: false,
    headers: { ...headers, ...(lastId !== undefined && { 'last-event-id': lastId }) },
  })
  request.on('error', () => {})
  const followed: Followed[] = []
  opened.push({ request, followed })
  const [response]: IncomingMessage[] = await once(request, 'response')
  if (response?.statusCode !== 200) throw new Error(`status ${response?.statusCode}`)
  response.setEncoding('utf8')
  response.on('error', () => {})
  let pending = ''
  await new Promise<void>((resolve) => {
    response.on('data', (chunk: string) => {
      const blocks = `${pending}${chunk}`.split('\n\n')
      pending = blocks.pop() ?? ''
      followed.push(...blocks.flatMap(readBlock))
      if (followed.length === 0) return
      resolve()
      if (readsNothing === true) response.pause()
    })
  })
}

function readBlock(block: string): Followed[] {
  const [, event] = /^event: (.*)$/m.exec(block) ?? []
  if (event === undefined) return []
  const [, id = ''] = /^id: (.*)$/m.exec(block) ?? []
  const [, seq] = /"seq":(\d+)/.exec(block) ?? []
  const [, workspaceId = null] = /"workspaceId":"([^"]*)"/.exec(block) ?? []
  return [{ event, seq: seq === undefined ? null : Number(seq), workspaceId, id }]
}

function progressOf(followed: readonly Followed[]): Progress {
  const events = followed.filter(({ seq }) => seq !== null)
  return {
    events: events.length,
    gaps: followed.filter(({ event }) => event === 'gap').length,
    lastSeq: events.at(-1)?.seq ?? 0,
    isLastGap: followed.at(-1)?.event === 'gap',
  }
}

async function runCommand(command: Command): Promise<unknown> {
  switch (command.kind) {
    case 'open':
      return await Promise.all(command.followers.map(openOne))
    case 'progress':
      return opened.map(({ followed }) => progressOf(followed))
    case 'report':
      return opened.map(({ followed }) => followed)
    case 'close':
      for (const { request } of opened.splice(0)) request.destroy()
      return []
    default:
      return command satisfies never
  }
}

if (!isMainThread) {
  parentPort?.on('message', (command: Command) => {
    void runCommand(command)
      .catch(String)
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- not a window
      .then((result) => parentPort?.postMessage(result))
  })
}
