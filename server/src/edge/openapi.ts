import swagger from '@fastify/swagger'
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { ExportRow } from './schema/export-file.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The dashboard's own document, beside `swagger`. */
    dashboardSwagger: FastifyInstance['swagger']
  }
}

/** Registered before the routes: they are collected as they come, into one document or the other. */
export async function collectOpenapi(app: FastifyInstance): Promise<void> {
  await app.register(swagger, {
    transform: ({ schema, url }) => ({ schema: hiddenWhen(schema, isDashboard(url)), url }),
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
        // No route has it for a body: it is what the lines of one are made of.
        schemas: { ExportRow },
        securitySchemes: { apiKey: { type: 'http', scheme: 'bearer' } },
      },
      security: [{ apiKey: [] }],
    },
  })
  await app.register(swagger, {
    decorator: 'dashboardSwagger',
    transform: ({ schema, url, route }) => ({
      schema: withPermission(hiddenWhen(schema, !isDashboard(url)), route.config?.permission),
      url,
    }),
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Annals dashboard',
        version: '1.0.0',
        description:
          'What the pages of the dashboard are made of. Outside the public contract: it may change with any release.',
      },
      tags: DASHBOARD_TAGS,
      components: {
        schemas: { ExportRow },
        securitySchemes: {
          session: { type: 'apiKey', in: 'cookie', name: '__Host-annals_session' },
        },
      },
      security: [{ session: [] }],
    },
  })
}

const DASHBOARD_TAGS = [
  { name: 'Session', description: 'Signing in and out, passwords, one-time links.' },
  { name: 'Explorer', description: 'Events: pages, suggestions, a histogram, a live tail.' },
  { name: 'Views', description: 'Saved queries.' },
  { name: 'Exports', description: 'Events as files.' },
  { name: 'Templates', description: 'Exports that are made again and again.' },
  { name: 'Webhooks', description: 'Events sent on as they come, and what became of them.' },
  { name: 'Keys', description: 'API keys and what they may do.' },
  { name: 'Integrity', description: 'The chains, and the proof that they hold.' },
  { name: 'Company', description: 'Workspaces, projects, members, plan and usage.' },
]

function isDashboard(url: string): boolean {
  return url.startsWith('/dashboard/')
}

/** What its caller must be allowed to; nothing for what anybody may call. */
function withPermission<T extends object | undefined>(schema: T, permission: unknown): T {
  return schema && permission ? { ...schema, 'x-permission': permission } : schema
}

/** A route without a schema is in no document as it is. */
function hiddenWhen<T extends object | undefined>(schema: T, isHidden: boolean): T {
  return isHidden && schema ? { ...schema, hide: true } : schema
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
