import { createHash } from 'node:crypto'
import { once } from 'node:events'
import * as http from 'node:http'
import { createRequire } from 'node:module'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { crc32 } from 'node:zlib'

export type SeenRequest = { method: string; path: string; query: string; body: Buffer }
type Frozen = { storageClass: string; archiveStatus: string | null; restore: string | null }
export type S3Response = { status: number; headers: http.OutgoingHttpHeaders; body: Buffer }

const EMPTY: S3Response = { status: 204, headers: {}, body: Buffer.alloc(0) }

/**
 * s3rver, a real S3 server, on loopback, behind a proxy that adds what it lacks: checksums, one
 * write of a key at a time, and cold storage classes. The proxy can also refuse, hang, break and
 * corrupt what it passes on, and vanish.
 *
 * The signer of a service uses the bucket in the background at any time. Its requests aren't listed, and the
 * faults of single requests never hit them.
 */
export class S3Server implements AsyncDisposable {
  readonly bucket = 'archive'
  readonly requests: SeenRequest[] = []
  mode: 'pass' | 'hang' | 'refuse' | 'fail' | 'deny' = 'pass'
  /** How many of the next uploads and downloads get this fault. */
  readonly next = {
    refused: 0,
    brokenOff: 0,
    stalled: 0,
    corrupted: 0,
    hungUp: 0,
    /** Without a length. */
    chunked: 0,
    /** Without a length or an end. */
    endless: 0,
  }
  /** Called for each request when its response is ready, before the next one is served. */
  onResponse: (request: SeenRequest) => void = () => {}
  /** While set, downloads wait until it resolves. */
  delay: Promise<void> | null = null
  /** Responds instead of the server, which then never sees the request; null passes it on. */
  intercept: (request: SeenRequest) => S3Response | null = () => null
  /** Changes the response of the server. */
  alter: (request: SeenRequest, response: S3Response) => S3Response = (_, response) => response
  /** Whether it writes objects whatever their ETag is, as old servers do. */
  ignoresConditions = false
  /** Requests without a response, whose senders still wait. */
  hanging = 0
  readonly #hung: (() => void)[] = []
  readonly #folder: string
  readonly #s3rver: S3rver
  readonly #proxy = http.createServer((request, response) => void this.#serve(request, response))
  readonly #frozen = new Map<string, Frozen>()
  /** Checksums of whole objects, by path; S3 keeps them, s3rver does not. */
  readonly #checksums = new Map<string, string>()
  readonly #tags = new Map<string, string>()
  /** The end of the last request per path, because s3rver mixes up concurrent writes. */
  readonly #ends = new Map<string, Promise<unknown>>()
  #endpoint = ''
  #upstreamPort = 0

  private constructor(folder: string) {
    this.#folder = folder
    this.#s3rver = new S3rver({
      address: '127.0.0.1',
      port: 0,
      silent: true,
      directory: folder,
      configureBuckets: [{ name: this.bucket }],
    })
    patchStore(this.#s3rver.store)
  }

  static async listen(): Promise<S3Server> {
    const server = new S3Server(await mkdtemp(join(tmpdir(), 'annals-test-')))
    server.#upstreamPort = (await server.#s3rver.run()).port
    server.#proxy.listen(0, '127.0.0.1')
    await once(server.#proxy, 'listening')
    const address = server.#proxy.address()
    if (address === null || typeof address === 'string') throw new Error('not on a port')
    server.#endpoint = `http://127.0.0.1:${address.port}`
    return server
  }

  /** Stays the same after `vanish`. */
  get endpoint(): string {
    return this.#endpoint
  }

  /** Configures a service to archive here. */
  get env(): Record<string, string> {
    return {
      ANNALS_ARCHIVE_URL: `s3://${this.bucket}/annals`,
      ANNALS_S3_ENDPOINT: this.#endpoint,
    }
  }

  /** Moves an object to a storage class, as a lifecycle rule would. `path` is prefix and key. */
  freeze(path: string, storageClass: string, archiveStatus: string | null = null): void {
    this.#frozen.set(`/${this.bucket}/${path}`, { storageClass, archiveStatus, restore: null })
  }

  /** Completes a requested restore. */
  finishRestore(path: string): void {
    const frozen = this.#frozen.get(`/${this.bucket}/${path}`)
    if (!frozen?.restore) throw new Error('no restore was requested')
    frozen.restore = 'ongoing-request="false", expiry-date="Fri, 01 Jan 2100 00:00:00 GMT"'
  }

  /** Stops listening, and cuts requests in progress. */
  async vanish(): Promise<void> {
    if (!this.#proxy.listening) return
    this.#proxy.close()
    this.#proxy.closeAllConnections()
    await once(this.#proxy, 'close')
  }

  /** Listens again at the same address. Does nothing if it never stopped. */
  async listenAgain(): Promise<void> {
    if (this.#proxy.listening) return
    this.#proxy.listen(Number(new URL(this.#endpoint).port), '127.0.0.1')
    await once(this.#proxy, 'listening')
  }

  /** Ends `hang`, and responds to the requests that it held. */
  resume(): void {
    this.mode = 'pass'
    for (const respond of this.#hung.splice(0)) respond()
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    try {
      const { pathname, search } = new URL(request.url ?? '/', this.#endpoint)
      const body = await buffer(request)
      const seen = { method: request.method ?? '', path: pathname, query: search.slice(1), body }
      const isSigners = pathname.includes('/signer/') || listedBy(seen) === 'annals/signer/'
      if (!isSigners) this.requests.push(seen)
      if (this.mode === 'hang') {
        if (!isSigners) this.hanging += 1
        response.on('close', () => {
          if (!isSigners) this.hanging -= 1
        })
        await new Promise<void>((resume) => this.#hung.push(resume))
      }
      const turn = this.#ends.get(pathname)
      const served = (async () => {
        await turn
        if (seen.method === 'GET') await this.delay
        return isSigners && this.mode === 'pass'
          ? await this.#store(seen, request.headers)
          : await this.#respond(seen, request.headers)
      })()
      this.#ends.set(
        pathname,
        served.catch(() => {}),
      )
      if (isSigners) {
        const { status, headers, body: bytes } = await served
        response.writeHead(status, { 'content-length': bytes.length, ...headers })
        response.end(bytes)
        return
      }
      const altered = this.alter(seen, await served)
      this.onResponse(seen)
      this.#send(seen, altered, response)
    } catch {
      response.destroy()
    }
  }

  async #respond(seen: SeenRequest, headers: http.IncomingHttpHeaders): Promise<S3Response> {
    if (this.mode === 'refuse' || take(this.next, 'refused')) return failure(503, 'SlowDown')
    if (this.mode === 'fail') return failure(500, 'InternalError')
    if (this.mode === 'deny') return failure(403, 'AccessDenied')
    const intercepted = this.intercept(seen)
    if (intercepted !== null) return intercepted
    // s3rver can't abort a multipart upload.
    if (seen.method === 'DELETE' && seen.query.includes('uploadId=')) return EMPTY
    return await this.#store(seen, headers)
  }

  /** What S3 itself does. */
  async #store(seen: SeenRequest, headers: http.IncomingHttpHeaders): Promise<S3Response> {
    if (listedBy(seen) !== null) return await this.#list(seen)
    return (
      this.#respondAsCold(seen) ??
      this.#refuseCondition(seen, headers) ??
      this.#refuseChecksum(seen, headers) ??
      this.#keepChecksum(seen, await this.#forward(seen, headers))
    )
  }

  /** s3rver can't continue a list, because its tokens need a cipher that OpenSSL no longer has. */
  async #list({ query }: SeenRequest): Promise<S3Response> {
    const params = new URLSearchParams(query)
    const after = Buffer.from(params.get('continuation-token') ?? '', 'base64').toString()
    const { objects, isTruncated } = await this.#s3rver.store.listObjects(this.bucket, {
      prefix: params.get('prefix') ?? '',
      maxKeys: Number(params.get('max-keys') ?? 1_000),
      startAfter: after,
    })
    const token = Buffer.from(objects.at(-1)?.key ?? '').toString('base64')
    const body = `<?xml version="1.0"?><ListBucketResult><IsTruncated>${isTruncated}</IsTruncated>${
      isTruncated ? `<NextContinuationToken>${token}</NextContinuationToken>` : ''
    }${objects.map(({ key }) => `<Contents><Key>${key}</Key></Contents>`).join('')}</ListBucketResult>`
    return { status: 200, headers: { 'content-type': 'application/xml' }, body: Buffer.from(body) }
  }

  /** The response of S3 for an object in a cold storage class; null leaves it to s3rver. */
  #respondAsCold({ method, path, query }: SeenRequest): S3Response | null {
    const frozen = this.#frozen.get(path)
    const isCold =
      frozen !== undefined &&
      (frozen.archiveStatus !== null || /^(GLACIER|DEEP_ARCHIVE)$/.test(frozen.storageClass))
    if (method === 'POST' && /^restore\b/.test(query)) {
      if (!isCold) return failure(403, 'InvalidObjectState')
      if (frozen.restore?.includes('true')) return failure(409, 'RestoreAlreadyInProgress')
      frozen.restore = 'ongoing-request="true"'
      return { ...EMPTY, status: 202 }
    }
    const isReadable = !isCold || frozen.restore?.includes('false')
    return method === 'GET' && !isReadable ? failure(403, 'InvalidObjectState') : null
  }

  /**
   * S3 compares checksums. This server also requires them, because each of our uploads must have
   * one.
   */
  #refuseChecksum(seen: SeenRequest, headers: http.IncomingHttpHeaders): S3Response | null {
    if (seen.method !== 'PUT') return null
    if (take(this.next, 'corrupted')) flipByte(seen.body)
    return headers['x-amz-checksum-crc32'] === checksumOf(seen.body)
      ? null
      : failure(400, 'BadDigest')
  }

  /** S3 compares ETags before it writes, unlike s3rver. `ignoresConditions` simulates a server that doesn't. */
  #refuseCondition(
    { method, path }: SeenRequest,
    headers: http.IncomingHttpHeaders,
  ): S3Response | null {
    if (method !== 'PUT' || this.ignoresConditions) return null
    const { 'if-match': wanted, 'if-none-match': absent } = headers
    const tag = this.#tags.get(path)
    if (absent === '*' && tag !== undefined) return failure(412, 'PreconditionFailed')
    if (wanted === undefined || wanted === tag) return null
    return tag === undefined ? failure(404, 'NoSuchKey') : failure(412, 'PreconditionFailed')
  }

  #keepChecksum({ method, path, query, body }: SeenRequest, response: S3Response): S3Response {
    const isPart = query.includes('partNumber=')
    if (method === 'PUT' && !isPart) this.#checksums.set(path, checksumOf(body))
    const { etag } = response.headers
    if (method === 'PUT' && typeof etag === 'string') this.#tags.set(path, etag)
    if (method === 'DELETE') this.#tags.delete(path)
    // The checksum of a multipart object is computed from those of its parts, and the SDK doesn't
    // compare it.
    if (method === 'POST') this.#checksums.delete(path)
    const frozen = this.#frozen.get(path)
    const checksum = method === 'GET' ? this.#checksums.get(path) : undefined
    const headers = {
      ...response.headers,
      ...(method === 'PUT' && { 'x-amz-checksum-crc32': checksumOf(body) }),
      ...(checksum && response.status === 200 && { 'x-amz-checksum-crc32': checksum }),
      ...(frozen && { 'x-amz-storage-class': frozen.storageClass }),
      ...(frozen?.archiveStatus && { 'x-amz-archive-status': frozen.archiveStatus }),
      ...(frozen?.restore && { 'x-amz-restore': frozen.restore }),
    }
    return { ...response, headers }
  }

  async #forward(
    { method, path, query, body }: SeenRequest,
    headers: http.IncomingHttpHeaders,
  ): Promise<S3Response> {
    const request = http.request({
      host: '127.0.0.1',
      port: this.#upstreamPort,
      method,
      path: query === '' ? path : `${path}?${query}`,
      headers: { ...headers, connection: 'close' },
    })
    request.end(body)
    const [response]: http.IncomingMessage[] = await once(request, 'response')
    if (response === undefined) throw new Error('no response')
    const { connection: _, 'transfer-encoding': __, ...kept } = response.headers
    return { status: response.statusCode ?? 0, headers: kept, body: await buffer(response) }
  }

  #send(
    { method }: SeenRequest,
    { status, headers, body }: S3Response,
    response: http.ServerResponse,
  ): void {
    if (take(this.next, 'hungUp')) {
      response.destroy()
      return
    }
    const isDownload = method === 'GET' && (status === 200 || status === 206)
    const isEndless = isDownload && take(this.next, 'endless')
    if (isEndless || (isDownload && take(this.next, 'chunked'))) {
      const { 'content-length': _, ...others } = headers
      response.writeHead(status, others)
      Readable.from(isEndless ? repeat(body) : [body]).pipe(response)
      return
    }
    response.writeHead(status, { 'content-length': body.length, ...headers })
    if (isDownload && take(this.next, 'brokenOff')) {
      response.write(body.subarray(0, body.length / 2), () => response.destroy())
    } else if (isDownload && take(this.next, 'stalled')) {
      response.write(body.subarray(0, body.length / 2))
    } else {
      if (isDownload && take(this.next, 'corrupted')) flipByte(body)
      response.end(body)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.vanish()
    await this.#s3rver.close()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

export type MetadataTrap = { server: Server; lookups: number }

/**
 * Replaces the machine's metadata service, so that nothing leaves loopback and every lookup is
 * counted.
 */
export async function listenAsMetadata(): Promise<MetadataTrap> {
  const server = createServer((socket) => {
    trap.lookups += 1
    socket.destroy()
  })
  const trap: MetadataTrap = { server, lookups: 0 }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return trap
}

/** Sets everything that the SDK reads in this process: s3rver's credentials, and no region. */
export function setS3Environment({ server }: MetadataTrap): void {
  for (const name of Object.keys(process.env)) {
    if (name.startsWith('AWS_')) delete process.env[name]
  }
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not on a port')
  process.env.AWS_EC2_METADATA_SERVICE_ENDPOINT = `http://127.0.0.1:${address.port}`
  process.env.AWS_ACCESS_KEY_ID = 'S3RVER'
  process.env.AWS_SECRET_ACCESS_KEY = 'S3RVER'
  // Ignore the AWS configuration of the person who runs the tests.
  process.env.AWS_CONFIG_FILE = '/dev/null'
  process.env.AWS_SHARED_CREDENTIALS_FILE = '/dev/null'
}

/** Like `setS3Environment`, for commands, which get only the variables that the test passes. */
export function s3Environment(s3: S3Server): Record<string, string> {
  const aws = Object.entries(process.env).flatMap(([name, value]) =>
    name.startsWith('AWS_') && value !== undefined ? [[name, value]] : [],
  )
  return { ...s3.env, ...Object.fromEntries(aws) }
}

type Metadata = Record<string, string>
type Stored = { size: number; md5: string }
type S3rverStore = {
  getResourcePath(bucket: string, key: string | undefined, resource: string): string
  putMetadata(bucket: string, key: string, metadata: Metadata, md5: string): Promise<void>
  putObject(object: {
    bucket: string
    key: string
    content: Readable
    metadata: Metadata
  }): Promise<Stored>
  putPart(bucket: string, uploadId: string, part: string, content: Readable): Promise<Stored>
  listObjects(
    bucket: string,
    options: { prefix: string; maxKeys: number; startAfter: string },
  ): Promise<{ objects: { key: string }[]; isTruncated: boolean }>
}
type S3rver = {
  store: S3rverStore
  run(): Promise<AddressInfo>
  close(): Promise<void>
}
/** A CommonJS package without types. */
const S3rver: new (options: {
  address: string
  port: number
  silent: boolean
  directory: string
  configureBuckets: { name: string }[]
}) => S3rver = createRequire(import.meta.url)('s3rver')

/** s3rver responds to an upload while it still writes the file; S3 responds once it is stored. */
function patchStore(store: S3rverStore): void {
  store.putObject = async ({ bucket, key, content, metadata }) => {
    const stored = await writeWhole(store.getResourcePath(bucket, key, 'object'), content)
    await store.putMetadata(bucket, key, metadata, stored.md5)
    return stored
  }
  store.putPart = async (bucket, uploadId, part, content) => {
    const uploads = store.getResourcePath(bucket, undefined, 'uploads')
    return await writeWhole(join(uploads, uploadId, part), content)
  }
}

async function writeWhole(path: string, content: Readable): Promise<Stored> {
  const bytes = await buffer(content)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, bytes)
  return { size: bytes.length, md5: createHash('md5').update(bytes).digest('hex') }
}

/** The prefix that a request lists, or null if it is another request. */
function listedBy({ method, query }: SeenRequest): string | null {
  const params = new URLSearchParams(query)
  return method === 'GET' && params.get('list-type') === '2' ? (params.get('prefix') ?? '') : null
}

function take<Name extends string>(counts: Record<Name, number>, name: Name): boolean {
  if (counts[name] === 0) return false
  counts[name] -= 1
  return true
}

export function failure(status: number, code: string): S3Response {
  const body = Buffer.from(`<?xml version="1.0"?>
<Error><Code>${code}</Code><Message>Played by the test.</Message><RequestId>test</RequestId></Error>`)
  return { status, headers: { 'content-type': 'application/xml' }, body }
}

/** In S3's format: the four bytes in base64. */
function checksumOf(bytes: Buffer): string {
  const checksum = Buffer.alloc(4)
  checksum.writeUInt32BE(crc32(bytes))
  return checksum.toString('base64')
}

function flipByte(bytes: Buffer): void {
  const middle = Math.floor(bytes.length / 2)
  bytes.writeUInt8(bytes.readUInt8(middle) ^ 1, middle)
}

function* repeat(body: Buffer): Generator<Buffer, never> {
  for (;;) yield body
}
