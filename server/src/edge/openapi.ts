import swagger from '@fastify/swagger'
import reference from '@scalar/fastify-api-reference'
import type { FastifyInstance } from 'fastify'

/** Registered before the routes: it collects them as they come. */
export async function collectOpenapi(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Annals',
        version: '1.0.0',
        description:
          'Audit events: ingestion into a tamper-evident ledger, queries, signed webhooks, exports.',
      },
      tags: [
        { name: 'Events', description: 'Send and find audit events.' },
        { name: 'Keys', description: 'The key that calls.' },
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
export async function serveOpenapi(app: FastifyInstance): Promise<void> {
  app.get('/', { schema: { hide: true } }, (_request, reply) => reply.redirect('/docs'))
  app.get('/openapi.json', { schema: { hide: true } }, () => app.swagger())
  await app.register(async (scope) => {
    scope.addHook('onSend', async (_request, reply) => {
      reply.header('content-security-policy', REFERENCE_POLICY)
    })
    await scope.register(reference, {
      routePrefix: '/docs',
      configuration: {
        url: '/openapi.json',
        withDefaultFonts: false,
        telemetry: false,
        hideClientButton: true,
      },
    })
  })
}
