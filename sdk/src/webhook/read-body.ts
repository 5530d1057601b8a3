/** A body as it arrived, in the forms that runtimes have. */
export type Body =
  string | ArrayBuffer | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> | null

/** The bytes of a body, or null if there are more than `bytesMax`. */
export async function readBody(
  body: Body,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer> | null> {
  if (body === null) return new Uint8Array()
  if (typeof body === 'string') return atMost(new TextEncoder().encode(body), bytesMax)
  if (body instanceof ArrayBuffer) return atMost(new Uint8Array(body), bytesMax)
  if (body instanceof Uint8Array) return atMost(new Uint8Array(body), bytesMax)
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of chunksOf(body)) {
    length += chunk.byteLength
    if (length > bytesMax) return null
    chunks.push(chunk)
  }
  const bytes = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.byteLength
  }
  return bytes
}

function atMost(bytes: Uint8Array<ArrayBuffer>, bytesMax: number): Uint8Array<ArrayBuffer> | null {
  return bytes.byteLength > bytesMax ? null : bytes
}

/** Not every runtime can iterate over a web stream. */
async function* chunksOf(
  body: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  if (!('getReader' in body)) {
    yield* body
    return
  }
  const reader = body.getReader()
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
  } finally {
    await reader.cancel().catch(() => {})
  }
}
