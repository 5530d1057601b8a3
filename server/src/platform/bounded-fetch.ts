type FetchOptions = {
  method: string
  headers: Record<string, string>
  body?: URLSearchParams | string | undefined
  redirect: 'manual'
}

/**
 * Like `fetch`, but reads at most `responseBytesMax`, and all requests together end with the signal. The response
 * is complete when it is returned, so reading it can't hang.
 */
export function createBoundedFetch(
  signal: AbortSignal,
  { responseBytesMax }: { responseBytesMax: number },
): (url: string, options: FetchOptions) => Promise<Response> {
  return async (url, { body, ...options }) => {
    const response = await fetch(url, { ...options, body: body ?? null, signal })
    const bytes = await readAll(response, responseBytesMax)
    const { status, headers } = response
    return new Response(bytes.length > 0 ? bytes : null, { status, headers })
  }
}

async function readAll({ body }: Response, bytesMax: number): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.length
    // Leaving the loop closes the connection.
    if (size > bytesMax) throw new Error(`more than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
