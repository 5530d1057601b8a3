import { fastify, type FastifyInstance } from 'fastify'
import { compressStaticFile, sendStaticFile, type StaticFile } from '../static-file.ts'

/** For the reference page and its script, which load nothing from other hosts. */
const REFERENCE_POLICY = [
  "default-src 'none'",
  "script-src 'self' 'unsafe-inline'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

const REFERENCE_CONFIGURATION = {
  url: '/openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  // Services of the page's vendor, which the policy above would block anyway.
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
} as const

/**
 * GET /openapi.json and the page that renders it, GET /docs. Each response is built on the first request and
 * cached: anyone can call these routes, so a request must be cheap.
 */
export function serveOpenapi(app: FastifyInstance): void {
  let document: Promise<StaticFile> | null = null
  let reference: Promise<Reference> | null = null
  app.get('/openapi.json', async (request, reply) => {
    document ??= compressStaticFile(
      'application/json; charset=utf-8',
      Buffer.from(JSON.stringify(app.describeRoutes('v1'))),
    )
    return sendStaticFile(await document, request, reply)
  })
  app.get('/docs', (_request, reply) => reply.redirect('/docs/', 301))
  for (const [path, part] of [
    ['/docs/', 'page'],
    ['/docs/js/scalar.js', 'script'],
  ] as const) {
    app.get(path, async (request, reply) => {
      reference ??= loadReference()
      const file = (await reference)[part]
      reply.header('content-security-policy', REFERENCE_POLICY)
      return sendStaticFile(file, request, reply)
    })
  }
}

type Reference = { page: StaticFile; script: StaticFile }

/**
 * The page's package is larger than the whole service, so it is loaded on the first request. This saves a
 * third of a second at startup, and memory. The package is only available as a plugin that encodes its 4 MB
 * script for every request, so we call the plugin once and keep the result.
 */
async function loadReference(): Promise<Reference> {
  const { default: plugin } = await import('@scalar/fastify-api-reference')
  await using source = fastify()
  await source.register(plugin, { routePrefix: '/docs', configuration: REFERENCE_CONFIGURATION })
  const load = async (url: string) => {
    const { headers, rawPayload } = await source.inject(url)
    return await compressStaticFile(String(headers['content-type']), rawPayload)
  }
  return { page: await load('/docs/'), script: await load('/docs/js/scalar.js') }
}
