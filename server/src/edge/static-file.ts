import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { prefersBrotli, prefersGzip } from './http/accept-encoding.ts'

const GZIP_LEVEL = 9
const compress = promisify(gzip)

/**
 * A file in memory, in every supported encoding. The buffers are built once and shared by all connections, so
 * a request requires no compression, and a slow client needs no copy.
 */
export type StaticFile = {
  type: string
  /** Weak, because it is the same for every encoding. */
  etag: string
  plain: Buffer
  gzip: Buffer | null
  brotli: Buffer | null
}

type Encodings = Pick<StaticFile, 'plain' | 'gzip' | 'brotli'>

export function createStaticFile(type: string, encodings: Encodings): StaticFile {
  const digest = createHash('sha256').update(encodings.plain).digest('base64url')
  return { type, etag: `W/"${digest}"`, ...encodings }
}

/** Compresses off the main thread, for files that are built while requests are served. */
export async function compressStaticFile(type: string, plain: Buffer): Promise<StaticFile> {
  const packed = await compress(plain, { level: GZIP_LEVEL })
  return createStaticFile(type, { plain, gzip: packed, brotli: null })
}

/** Sends the encoding that the client prefers, or 304 if the client has this version. */
export function sendStaticFile(
  file: StaticFile,
  { headers }: FastifyRequest,
  reply: FastifyReply,
  cacheControl = 'no-cache',
): FastifyReply {
  reply.headers({ 'cache-control': cacheControl, etag: file.etag, vary: 'accept-encoding' })
  if (isKnown(file, headers['if-none-match'])) return reply.code(304).send()
  const { coding, bytes } = chooseEncoding(file, headers['accept-encoding'])
  if (coding !== null) reply.header('content-encoding', coding)
  return reply.type(file.type).send(bytes)
}

/** RFC 9110, section 13.1.2: matches any of the listed tags, ignoring weakness. */
function isKnown({ etag }: StaticFile, header: string | undefined): boolean {
  if (header === undefined) return false
  return header.trim() === '*' || header.includes(etag.slice('W/'.length))
}

function chooseEncoding({ plain, gzip: packed, brotli }: StaticFile, header: string | undefined) {
  if (brotli !== null && prefersBrotli(header)) return { coding: 'br', bytes: brotli }
  if (packed !== null && prefersGzip(header)) return { coding: 'gzip', bytes: packed }
  return { coding: null, bytes: plain }
}
