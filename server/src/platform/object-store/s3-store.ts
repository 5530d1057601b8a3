import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import type {
  AbortMultipartUploadCommand,
  GetObjectCommandOutput,
  HeadObjectCommandOutput,
  S3,
} from '@aws-sdk/client-s3'
import type { Upload } from '@aws-sdk/lib-storage'
import { untilAborted, withDeadline } from '../time/deadline.ts'
import {
  type ListedKeys,
  type ObjectState,
  type ObjectStore,
  REPLACED_BYTES_MAX,
  type TaggedObject,
} from './object-store.ts'
import { responseOf, explainS3Error, messageForStatus } from './s3-error.ts'
import { StorageError } from './storage-error.ts'

/** Limits for one operation: a request may be retried, and an upload consists of many requests. */
export type S3Limits = {
  connectMsMax: number
  /** Timeout for the start of a response and between chunks. Writes may take longer than reads. */
  requestMsMax: number
  readRequestMsMax: number
  /** Deadlines for reading or writing a whole object, and for any other call. */
  totalMsMax: number
  partMsMax: number
  attemptsMax: number
}

const LIMITS: S3Limits = {
  connectMsMax: 5_000,
  requestMsMax: 30_000,
  readRequestMsMax: 10_000,
  totalMsMax: 120_000,
  partMsMax: 30_000,
  attemptsMax: 3,
}

/** Larger objects are uploaded in parts of this size, which are retried separately. */
const PART_BYTES = 8 * 1_024 * 1_024
const PARTS_AT_ONCE_MAX = 2
/** How long a restored copy is kept. */
const RESTORED_DAYS = 7

type S3Location = { bucket: string; prefix: string }
type Sdk = {
  Upload: typeof Upload
  AbortMultipartUploadCommand: typeof AbortMultipartUploadCommand
}

/** The default of S3-compatible servers. */
const REGION_DEFAULT = 'us-east-1'

/**
 * Credentials come from the same sources as for AWS's own tools: environment variables, files or the
 * machine. So does the region for AWS itself. With a custom endpoint, the region is never left to the SDK:
 * if none is set, the SDK would request it from the metadata service at 169.254.169.254, even with
 * credentials in the environment.
 */
export async function openS3Store(
  location: S3Location,
  options: {
    endpoint: string | null
    region: string | null
    limits: Partial<S3Limits>
    objectBytesMax: number
  },
): Promise<ObjectStore> {
  if (location.bucket === '')
    throw new StorageError('ANNALS_ARCHIVE_URL has no bucket. Use s3://bucket/prefix.')
  const { endpoint, objectBytesMax } = options
  const region = options.region ?? (endpoint === null ? null : REGION_DEFAULT)
  const limits = { ...LIMITS, ...options.limits }
  // Load the SDK on demand, so that services that archive to a folder don't pay for it.
  const { S3, AbortMultipartUploadCommand } = await import('@aws-sdk/client-s3')
  const { Upload } = await import('@aws-sdk/lib-storage')
  const connect = (requestMsMax: number) =>
    new S3({
      ...(endpoint !== null && { endpoint, forcePathStyle: true }),
      ...(region !== null && { region }),
      maxAttempts: limits.attemptsMax,
      // With this header, each upload opens its own connection, and a server that doesn't support it blocks
      // the upload for the whole request timeout.
      expectContinueHeader: false,
      requestHandler: {
        connectionTimeout: limits.connectMsMax,
        requestTimeout: requestMsMax,
        // By default, the handler only prints a warning.
        throwOnRequestTimeout: true,
        // `requestTimeout` ends with the response headers; this one also covers the body.
        socketTimeout: requestMsMax,
      },
    })
  return new S3Store({
    sdk: { Upload, AbortMultipartUploadCommand },
    client: connect(limits.requestMsMax),
    reader: connect(Math.min(limits.readRequestMsMax, limits.requestMsMax)),
    location,
    limits,
    objectBytesMax,
  })
}

class S3Store implements ObjectStore {
  readonly #sdk: Sdk
  readonly #client: S3
  /** Has its own connections, so that hanging writes and reads don't block each other. */
  readonly #reader: S3
  readonly #closed = new AbortController()
  readonly #location: S3Location
  readonly #limits: S3Limits
  readonly #objectBytesMax: number

  constructor(options: {
    sdk: Sdk
    client: S3
    reader: S3
    location: S3Location
    limits: S3Limits
    objectBytesMax: number
  }) {
    this.#sdk = options.sdk
    this.#client = options.client
    this.#reader = options.reader
    this.#location = options.location
    this.#limits = options.limits
    this.#objectBytesMax = options.objectBytesMax
  }

  /** Each request has a checksum (CRC32, the SDK's default), which the server verifies. */
  async put(key: string, bytes: Buffer, signal?: AbortSignal): Promise<void> {
    const limits = { timeoutMs: this.#limits.totalMsMax, signal }
    await this.#call(limits, async (abortSignal) => {
      const upload = new this.#sdk.Upload({
        client: this.#stoppableClient(abortSignal),
        params: { ...this.#target(key), Body: bytes },
        partSize: PART_BYTES,
        queueSize: PARTS_AT_ONCE_MAX,
      })
      await upload.done()
    })
  }

  async read(key: string, signal?: AbortSignal): Promise<Buffer | null> {
    const limits = { timeoutMs: this.#limits.totalMsMax, signal }
    return await this.#call(limits, async (abortSignal) => {
      const get = async () => await this.#reader.getObject(this.#target(key), { abortSignal })
      return await this.#receive(key, get, { bytesMax: this.#objectBytesMax, abortSignal })
    })
  }

  async readTagged(key: string, signal?: AbortSignal): Promise<TaggedObject | null> {
    return await this.#call(this.#partLimits(signal), async (abortSignal) => {
      let tag = ''
      const get = async () => {
        const answer = await this.#reader.getObject(this.#target(key), { abortSignal })
        tag = answer.ETag ?? ''
        return answer
      }
      const bytes = await this.#receive(key, get, { bytesMax: REPLACED_BYTES_MAX, abortSignal })
      if (bytes !== null && tag === '') {
        throw new StorageError(`${this.#url} sent an object without an ETag.`)
      }
      return bytes && { bytes, tag }
    })
  }

  async replace(
    key: string,
    { bytes, tag }: { bytes: Buffer; tag: string | null },
    signal?: AbortSignal,
  ): Promise<string | null> {
    const condition = tag === null ? { IfNoneMatch: '*' } : { IfMatch: tag }
    const request = { ...this.#target(key), Body: bytes, ...condition }
    return await this.#call(this.#partLimits(signal), async (abortSignal) => {
      const answer = await this.#client
        .putObject(request, { abortSignal })
        .catch(nullWhen(({ name }) => NOT_REPLACED.has(name)))
      return answer && (answer.ETag ?? null)
    })
  }

  /** Partial reads have no checksum, so the caller has to verify the bytes. */
  async readRange(
    key: string,
    start: number,
    end: number,
    signal?: AbortSignal,
  ): Promise<Buffer | null> {
    const request = { ...this.#target(key), Range: `bytes=${start}-${end - 1}` }
    return await this.#call(this.#partLimits(signal), async (abortSignal) => {
      const get = async () => await this.#reader.getObject(request, { abortSignal })
      try {
        return await this.#receive(key, get, { bytesMax: end - start, abortSignal })
      } catch (error) {
        // The object ends before the range starts.
        if (responseOf(error)?.status === 416) return Buffer.alloc(0)
        throw error
      }
    })
  }

  async #receive(
    key: string,
    get: () => Promise<GetObjectCommandOutput>,
    { bytesMax, abortSignal }: { bytesMax: number; abortSignal: AbortSignal },
  ): Promise<Buffer | null> {
    for (let attempt = 1; ; attempt += 1) {
      const answer = await get().catch(nullWhen((error) => error.name === 'NoSuchKey'))
      if (answer === null) return null
      // A proxy may omit the length.
      const { Body: body, ContentLength: bytes } = answer
      assert(body instanceof Readable, 'an answer to GET has a body')
      try {
        const isTooLong = bytes !== undefined && bytes > bytesMax
        const received = isTooLong ? null : await readAtMost(body, bytesMax)
        if (received === null) {
          body.destroy()
          throw new StorageError(`The archived object ${key} is larger than ${bytesMax} bytes.`, {
            isTooLarge: true,
          })
        }
        if (bytes === undefined || received.length === bytes) return received
        throw new Error(`only ${received.length} of ${bytes} bytes arrived`)
      } catch (error) {
        if (error instanceof StorageError) throw error
        // The SDK retries only until the response headers arrive. If the body breaks off or doesn't match
        // its checksum, retry here.
        if (attempt < this.#limits.attemptsMax && !abortSignal.aborted) continue
        throw isChecksumMismatch(error)
          ? new StorageError(
              `The object ${key} of ${this.#url} is damaged: its bytes don't match its checksum.`,
              { cause: error },
            )
          : error
      }
    }
  }

  async list(
    prefix: string,
    { cursor, limit }: { cursor: string | null; limit: number },
    signal?: AbortSignal,
  ): Promise<ListedKeys> {
    const { Bucket, Key: Prefix } = this.#target(prefix)
    const token = cursor === null ? {} : { ContinuationToken: cursor }
    const request = { Bucket, Prefix, MaxKeys: limit, ...token }
    return await this.#call(this.#partLimits(signal), async (abortSignal) => {
      const answer = await this.#reader.listObjectsV2(request, { abortSignal })
      const next = answer.IsTruncated === true ? answer.NextContinuationToken : null
      // Without this check, the rest would be missing, or the list would never end.
      if (next === undefined || (next !== null && next === cursor)) {
        throw new StorageError(
          `${this.#url} returned a truncated list without a valid continuation token.`,
        )
      }
      const keys = (answer.Contents ?? []).flatMap(({ Key = '' }) =>
        Key.startsWith(Prefix) ? [`${prefix}${Key.slice(Prefix.length)}`] : [],
      )
      return { keys, cursor: next }
    })
  }

  async stat(key: string, signal?: AbortSignal): Promise<ObjectState | null> {
    const head = await this.#head(key, signal)
    return head && { bytes: head.ContentLength ?? 0, readiness: readinessOf(head) }
  }

  async restore(key: string, signal?: AbortSignal): Promise<void> {
    const head = await this.#head(key, signal)
    if (head === null) throw new StorageError(`The archive has no object ${key} to restore.`)
    if (readinessOf(head) !== 'cold') return
    const request = {
      // Intelligent-Tiering keeps a restored object permanently, and rejects a number of days.
      ...(head.ArchiveStatus === undefined && { Days: RESTORED_DAYS }),
      GlacierJobParameters: { Tier: 'Standard' as const },
    }
    await this.#call(this.#partLimits(signal), async (abortSignal) => {
      await this.#client
        .restoreObject({ ...this.#target(key), RestoreRequest: request }, { abortSignal })
        // Another request restored the object, or its class changed, since the check above.
        .catch(nullWhen(({ name }) => NOTHING_TO_RESTORE.has(name)))
    })
  }

  async delete(key: string, signal?: AbortSignal): Promise<void> {
    await this.#call(this.#partLimits(signal), async (abortSignal) => {
      await this.#client.deleteObject(this.#target(key), { abortSignal })
    })
  }

  async #head(
    key: string,
    signal: AbortSignal | undefined,
  ): Promise<HeadObjectCommandOutput | null> {
    return await this.#call(this.#partLimits(signal), async (abortSignal) => {
      const head = await this.#reader
        .headObject(this.#target(key), { abortSignal })
        .catch(nullWhen((error) => responseOf(error)?.status === 404))
      if (head !== null) return head
      // The response to HEAD has no body, which would distinguish a missing object from a missing bucket.
      const bucket = await this.#reader
        .headBucket({ Bucket: this.#location.bucket }, { abortSignal })
        .catch(nullWhen((error) => responseOf(error)?.status === 404))
      if (bucket === null) throw new StorageError(messageForStatus('NoSuchBucket', 404, this.#url))
      return null
    })
  }

  #target(key: string): { Bucket: string; Key: string } {
    const { bucket, prefix } = this.#location
    return { Bucket: bucket, Key: prefix === '' ? key : `${prefix}/${key}` }
  }

  get #url(): string {
    const { bucket, prefix } = this.#location
    return `s3://${bucket}/${prefix}`
  }

  /**
   * Upload passes no signal to its requests. They would continue after a timeout, and a late
   * one could overwrite what the caller has stored since. This client stops them, except for
   * the cleanup of uploaded parts.
   */
  #stoppableClient(abortSignal: AbortSignal): S3 {
    const client = this.#client
    const { AbortMultipartUploadCommand } = this.#sdk
    const send = (command: Parameters<S3['send']>[0]): Promise<unknown> =>
      command instanceof AbortMultipartUploadCommand
        ? client.send(command)
        : client.send(command, { abortSignal })
    return Object.create(client, { send: { value: send } })
  }

  #partLimits(signal: AbortSignal | undefined): CallLimits {
    return { timeoutMs: this.#limits.partMsMax, signal }
  }

  /** Runs one operation with its deadline, and translates its errors. */
  async #call<T>(
    { timeoutMs, signal }: CallLimits,
    run: (abortSignal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    signal?.throwIfAborted()
    const giveUp = new AbortController()
    const stop = AbortSignal.any([giveUp.signal, this.#closed.signal, ...(signal ? [signal] : [])])
    try {
      return await withDeadline(untilAborted(run(stop), stop), {
        timeoutMs,
        late: () =>
          Object.assign(new Error(`no response within ${timeoutMs} ms`), { name: 'TimeoutError' }),
      })
    } catch (error) {
      giveUp.abort()
      signal?.throwIfAborted()
      throw explainS3Error(error, this.#url)
    }
  }

  /** Aborts the requests in progress and doesn't wait for them. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort()
    this.#client.destroy()
    this.#reader.destroy()
  }
}

type CallLimits = { timeoutMs: number; signal: AbortSignal | undefined }

const COLD_CLASSES: ReadonlySet<string> = new Set(['GLACIER', 'DEEP_ARCHIVE'])
/** Another writer was faster, or deleted the object. */
const NOT_REPLACED: ReadonlySet<string> = new Set([
  'PreconditionFailed',
  'ConditionalRequestConflict',
  'NoSuchKey',
])
const NOTHING_TO_RESTORE: ReadonlySet<string> = new Set([
  'RestoreAlreadyInProgress',
  'ObjectAlreadyInActiveTierError',
  'InvalidObjectState',
])

/** The storage class stays the same after a restore. `Restore` tells whether a readable copy exists. */
function readinessOf({
  StorageClass: storageClass = 'STANDARD',
  ArchiveStatus: archiveStatus,
  Restore: restore = '',
}: HeadObjectCommandOutput): ObjectState['readiness'] {
  if (!COLD_CLASSES.has(storageClass) && archiveStatus === undefined) return 'ready'
  if (restore.includes('ongoing-request="true"')) return 'restoring'
  return restore.includes('ongoing-request="false"') ? 'ready' : 'cold'
}

/** The SDK has no class or code for this error. */
function isChecksumMismatch(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('Checksum mismatch')
}

function nullWhen(isExpected: (error: Error) => boolean): (error: unknown) => null {
  return (error) => {
    if (error instanceof Error && isExpected(error)) return null
    throw error
  }
}

/** Null if there are more bytes. A response without a length could be endless. */
async function readAtMost(stream: Readable, bytesMax: number): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream) {
    assert(Buffer.isBuffer(chunk))
    bytes += chunk.length
    if (bytes > bytesMax) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, bytes)
}
