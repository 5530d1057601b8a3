import swagger from '@fastify/swagger'
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'

/** Registered before the routes: it collects them as they come. */
export async function collectOpenapi(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Annals',
        version: '1.0.0',
        description:
          'Audit events: ingestion into a tamper-evident ledger, queries, signed webhooks, and exports.',
      },
      tags: [
        { name: 'Events', description: 'Send and find audit events.' },
        { name: 'Keys', description: 'The key that calls.' },
        { name: 'Webhooks', description: 'Events sent on as they come, signed.' },
        { name: 'Exports', description: 'Events as files, streamed.' },
        { name: 'Health', description: 'For load balancers and operators.' },
      ],
      components: {
        securitySchemes: { apiKey: { type: 'http', scheme: 'bearer' } },
      },
      security: [{ apiKey: [] }],
    },
  })
}

/** The reference page and its script; nothing on it comes from another host. */
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

/** GET /openapi.json and the page that renders it, GET /docs. */
export function serveOpenapi(app: FastifyInstance): void {
  let page: Promise<FastifyInstance> | null = null
  const servePage = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    reply.hijack()
    page ??= loadPage()
    const loaded = await page
    loaded.routing(request.raw, reply.raw)
  }
  const hidden = { schema: { hide: true } }
  app.get('/', hidden, (_request, reply) => reply.redirect('/docs'))
  app.get('/openapi.json', hidden, () => app.swagger())
  for (const path of ['/docs', '/docs/', '/docs/js/scalar.js']) app.get(path, hidden, servePage)
}

/**
 * The page's package is larger than the whole service, so it is loaded when somebody first looks:
 * a start is a third of a second shorter, and the memory is there for events.
 */
async function loadPage(): Promise<FastifyInstance> {
  const { default: reference } = await import('@scalar/fastify-api-reference')
  const page = fastify()
  page.addHook('onSend', async (_request, reply) => {
    reply.headers({
      'content-security-policy': REFERENCE_POLICY,
      'x-content-type-options': 'nosniff',
    })
  })
  await page.register(reference, {
    routePrefix: '/docs',
    configuration: {
      url: '/openapi.json',
      withDefaultFonts: false,
      telemetry: false,
      hideClientButton: true,
      // The maker's own services, which the policy above would block anyway.
      showDeveloperTools: 'never',
      agent: { disabled: true },
      mcp: { disabled: true },
    },
  })
  await page.ready()
  return page
}
